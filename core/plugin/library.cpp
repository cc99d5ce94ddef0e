// Loading a plugin's library and checking its table.
#include "core/plugin/library.h"

#define BOOST_DLL_USE_STD_FS
#include <boost/dll/shared_library.hpp>
#include <cstddef>
#include <cstring>

#include "core/base/digest.h"
#include "core/base/error.h"
#include "core/plugin/search.h"

namespace trireme::plugin {
namespace {

namespace dll = boost::dll;

// Libraries stay loaded until the process ends, and beyond the destructors of static objects: code of theirs may
// still be referred to. So this list is never destroyed.
std::vector<dll::shared_library>& kept() {
  static auto* const list = std::make_unique<std::vector<dll::shared_library>>().release();
  return *list;
}

dll::shared_library open(const std::filesystem::path& file) {
  dll::fs::error_code error;
  dll::shared_library library;
  try {
    // NOW: a missing symbol is found here, not in step 10,000. LOCAL: two plugins never see each other's symbols.
    library.load(std::filesystem::absolute(file), dll::load_mode::rtld_now | dll::load_mode::rtld_local);
  } catch (const std::exception& e) {
    fail(ExitCode::internal, "plugin {}: the loader refused it: {}", file.string(), e.what());
  }
  return library;
}

// A copy of the table, padded with zeros to the length that this program knows.
trireme_plugin padded(const trireme_plugin& table, const std::string& file) {
  // Up to and with `forward` and `loss`, the least that a model needs.
  constexpr std::size_t least = offsetof(trireme_plugin, loss) + sizeof(table.loss);
  if (table.size < least) {
    fail(ExitCode::internal, "plugin {}: its table has {} bytes, at least {} are wanted; build it with this SDK", file,
         table.size, least);
  }
  if (table.abi_major != TRIREME_ABI_MAJOR) {
    fail(ExitCode::internal,
         "plugin {}: built for ABI {}.{}, this program has ABI {}.{}; build the plugin with this program's SDK", file,
         table.abi_major, table.abi_minor, TRIREME_ABI_MAJOR, TRIREME_ABI_MINOR);
  }
  trireme_plugin copy{};
  std::memcpy(&copy, &table, std::min<std::size_t>(table.size, sizeof(copy)));
  return copy;
}

void check_entries(const trireme_plugin& table, const std::string& file) {
  if (table.name == nullptr || *table.name == '\0') fail(ExitCode::internal, "plugin {}: its table has no name", file);
  if (table.create == nullptr || table.destroy == nullptr) {
    fail(ExitCode::internal, "plugin {} ('{}'): its table lacks {}", file, table.name,
         table.create == nullptr ? "create" : "destroy");
  }
  if (table.step == nullptr && (table.forward == nullptr || table.loss == nullptr)) {
    fail(ExitCode::internal, "plugin {} ('{}'): its table has neither forward with loss, nor step", file, table.name);
  }
  if (table.step != nullptr && (table.forward != nullptr || table.loss != nullptr)) {
    fail(ExitCode::internal, "plugin {} ('{}'): its table has step besides forward or loss; one way is wanted", file,
         table.name);
  }
  if (table.summarise != nullptr) {
    fail(ExitCode::internal, "plugin {} ('{}'): its table has summarise; that comes with a later version", file,
         table.name);
  }
}

}  // namespace

std::shared_ptr<const Library> Library::load(const std::string& plugin, bool trust) {
  const std::filesystem::path file = find_plugin(plugin);
  check_file(file, trust);
  check_elf(file);
  const std::string name = file.string();
  dll::shared_library opened = open(file);
  if (!opened.has(TRIREME_SYMBOL)) {
    fail(ExitCode::internal,
         "plugin {}: has no symbol '{}', so it is no Trireme plugin; end its source with TRIREME_MODEL(…)", name,
         TRIREME_SYMBOL);
  }
  const trireme_plugin table = padded(opened.get<const trireme_plugin>(TRIREME_SYMBOL), name);
  check_entries(table, name);
  kept().push_back(std::move(opened));

  std::shared_ptr<Library> library(new Library());  // NOLINT: the constructor is private
  library->table_ = std::make_shared<const trireme_plugin>(table);
  library->path_ = std::filesystem::canonical(file);
  library->digest_ = xxh3_of_file(name);
  return library;
}

std::string Library::name() const { return table_->name; }
std::string Library::version() const { return table_->version == nullptr ? "" : table_->version; }
std::string Library::build() const { return table_->build == nullptr ? "" : table_->build; }

}  // namespace trireme::plugin
