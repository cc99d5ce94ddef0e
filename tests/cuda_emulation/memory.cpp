// One range of addresses for all device memory, behind a protection key of the CPU where it has them, else behind mprotect.
#include "tests/cuda_emulation/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "tests/cuda_emulation/schedule.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, bytes) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(memory, bytes) static_cast<void>(0)
#endif

namespace trireme::cuda_emulation {

namespace {

constexpr std::size_t page = 4096, range_bytes = std::size_t{64} << 30;
constexpr int poison = 0xFF;

struct Allocation {
  std::size_t bytes = 0, pages = 0;
  char* begin = nullptr;  // of its pages
};

// For the life of the process, as threads may still run at its end.
struct Memory {
  char* range = nullptr;
  std::size_t used = 0, living = 0;  // bytes
  int key = -1;                      // -1: mprotect
  std::map<const char*, Allocation> allocations;
  std::multimap<std::size_t, char*> free;  // by pages
  std::map<const char*, std::size_t> pinned;
};

Memory& memory();

thread_local int open = 0;

void set_access(bool allowed) {
  const Memory& m = memory();
  if (m.key >= 0) {
    pkey_set(m.key, allowed ? 0 : PKEY_DISABLE_ACCESS);
  } else if (m.used != 0) {
    mprotect(m.range, m.used, allowed ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
}

struct sigaction before {};
thread_local sigjmp_buf* probe = nullptr;

void write_text(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

// Says which memory it was, then lets whoever handled the signal before see it again.
void segmentation_fault(int, siginfo_t* info, void*) {
  if (probe != nullptr) siglongjmp(*probe, 1);
  if (is_device(info->si_addr)) {
    write_text("cuda emulation: host code touched device memory; running: ");
    write_text(running());
    write_text("\n");
  }
  sigaction(SIGSEGV, &before, nullptr);
}

void make_memory(Memory& m) {
  void* const range =
      mmap(nullptr, range_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) {
    std::perror("cuda emulation: no address range for device memory");
    std::abort();
  }
  m.range = static_cast<char*>(range);
  const char* const protection = std::getenv("TRIREME_EMULATION_PROTECTION");
  const bool without_keys = protection != nullptr && std::strcmp(protection, "mprotect") == 0;
  m.key = without_keys ? -1 : pkey_alloc(0, PKEY_DISABLE_ACCESS);
  if (m.key >= 0) pkey_mprotect(range, range_bytes, PROT_READ | PROT_WRITE, m.key);
  struct sigaction action {};
  action.sa_sigaction = segmentation_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, &before);
}

Memory& memory() {
  static Memory* const made = [] {
    auto* const m = new Memory;  // NOLINT(cppcoreguidelines-owning-memory)
    make_memory(*m);
    return m;
  }();
  return *made;
}

// The allocation that begins at or before `pointer`, or null.
template <class Map>
auto begins_before(Map& map, const void* pointer) {
  auto found = map.upper_bound(static_cast<const char*>(pointer));
  return found == map.begin() ? map.end() : --found;
}

bool in_device(const void* pointer, std::size_t bytes) {
  const auto found = begins_before(memory().allocations, pointer);
  return found != memory().allocations.end() &&
         static_cast<const char*>(pointer) + bytes <= found->first + found->second.bytes;
}

bool in_pinned(const void* pointer, std::size_t bytes) {
  const auto found = begins_before(memory().pinned, pointer);
  return found != memory().pinned.end() && static_cast<const char*>(pointer) + bytes <= found->first + found->second;
}

std::string hex(const void* pointer) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%p", pointer);
  return text.data();
}

bool is_mapped(const void* pointer) {
  unsigned char resident = 0;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer) / page * page;
  return mincore(reinterpret_cast<void*>(address), page, &resident) == 0;
}

// Pages of that size, freed last first; else new ones; else the smallest that are large enough.
char* take_pages(std::size_t& pages) {
  Memory& m = memory();
  auto found = m.free.upper_bound(pages);
  if (found != m.free.begin() && std::prev(found)->first == pages) --found;
  const bool exact = found != m.free.end() && found->first == pages;
  if (!exact && m.used + pages * page <= range_bytes) {
    char* const begin = m.range + m.used;
    m.used += pages * page;
    return begin;
  }
  if (found == m.free.end()) return nullptr;
  pages = found->first;
  char* const begin = found->second;
  m.free.erase(found);
  return begin;
}

}  // namespace

void* allocate_device(std::size_t bytes) {
  Memory& m = memory();
  if (bytes == 0 || bytes > device_bytes - m.living) return nullptr;
  std::size_t pages = (bytes + page - 1) / page + 1;  // one lies between neighbours
  char* const begin = take_pages(pages);
  if (begin == nullptr) return nullptr;
  // Its end is as near to the end of its pages as the alignment allows.
  char* const made = begin + (((pages - 1) * page - bytes) & ~std::size_t{255});
  m.allocations[made] = {bytes, pages, begin};
  m.living += bytes;
  const DeviceMemoryOpen opened;
  ASAN_UNPOISON_MEMORY_REGION(begin, pages * page);
  std::memset(made, poison, bytes);
  ASAN_POISON_MEMORY_REGION(begin, pages * page);
  ASAN_UNPOISON_MEMORY_REGION(made, bytes);
  return made;
}

void free_device(void* freed) {
  Memory& m = memory();
  const auto found = m.allocations.find(static_cast<char*>(freed));
  if (found == m.allocations.end()) {
    report("cudaFree of " + hex(freed) + ", which is no allocation");
    return;
  }
  const Allocation gone = found->second;
  m.allocations.erase(found);
  m.living -= gone.bytes;
  m.free.emplace(gone.pages, gone.begin);
  const DeviceMemoryOpen opened;
  std::memset(freed, poison, gone.bytes);
  ASAN_POISON_MEMORY_REGION(freed, gone.bytes);
}

std::size_t free_device_bytes() { return device_bytes - memory().living; }

void* allocate_pinned(std::size_t bytes) {
  void* const made = std::aligned_alloc(page, (bytes + page - 1) / page * page);
  if (made != nullptr) memory().pinned[static_cast<char*>(made)] = bytes;
  return made;
}

void free_pinned(void* freed) {
  if (memory().pinned.erase(static_cast<char*>(freed)) == 0) {
    report("cudaFreeHost of " + hex(freed) + ", which is no pinned memory");
    return;
  }
  std::free(freed);
}

bool is_device(const void* pointer) {
  const char* const range = memory().range;
  return pointer >= range && pointer < range + range_bytes;
}

bool is_pinned(const void* pointer) { return in_pinned(pointer, 0); }

bool check_range(const void* pointer, std::size_t bytes, const char* what) {
  if (in_device(pointer, bytes) || in_pinned(pointer, bytes)) return true;
  report(std::string(what) + ": " + std::to_string(bytes) + " bytes from " + hex(pointer) +
         " are not inside one living allocation");
  return false;
}

bool check_pointer(const char* kernel, std::size_t argument, const void* pointer) {
  if (pointer == nullptr || in_device(pointer, 0) || in_pinned(pointer, 0)) return true;
  report(std::string("kernel ") + kernel + ": argument " + std::to_string(argument) + " is " + hex(pointer) +
         (is_device(pointer) ? ", freed device memory" : ", memory of the host that is not pinned"));
  return false;
}

bool check_value(const char* kernel, std::size_t argument, const void* value, std::size_t bytes) {
  constexpr std::uintptr_t lowest = std::uintptr_t{1} << 40,
                           highest = std::uintptr_t{1} << 47;  // of the host's libraries, heap
  for (std::size_t at = 0; at + sizeof(void*) <= bytes; at += sizeof(void*)) {
    const void* word = nullptr;
    std::memcpy(&word, static_cast<const char*>(value) + at, sizeof word);
    const auto address = reinterpret_cast<std::uintptr_t>(word);
    const bool suspect = is_device(word) || (address > lowest && address < highest && is_mapped(word));
    if (suspect && !check_pointer(kernel, argument, word)) return false;
  }
  return true;
}

DeviceMemoryOpen::DeviceMemoryOpen() {
  if (open++ == 0) set_access(true);
}
DeviceMemoryOpen::~DeviceMemoryOpen() {
  if (--open == 0) set_access(false);
}

bool closed_to_host(const void* byte) {
  static_cast<void>(memory());
  sigjmp_buf back;
  probe = &back;
  volatile bool closed = true;  // or the compiler sets it before it reads
  if (sigsetjmp(back, 1) == 0) {
    static_cast<void>(*static_cast<const volatile char*>(byte));
    closed = false;
  }
  probe = nullptr;
  // The handler left without returning, which would have brought back this thread's access.
  if (memory().key >= 0 && open == 0) pkey_set(memory().key, PKEY_DISABLE_ACCESS);
  return closed;
}

}  // namespace trireme::cuda_emulation
