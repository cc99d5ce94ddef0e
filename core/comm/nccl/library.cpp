// libnccl.so.2 by dlopen; a build that emulates the device (TRIREME_NCCL_LINKED) has the functions linked in.
#include "core/comm/nccl/library.h"

#include <dlfcn.h>

#include "core/base/error.h"

namespace trireme::comm {

namespace {

#ifdef TRIREME_NCCL_LINKED
#define TRIREME_NCCL(member, function) library.member = &function
#else
constexpr const char* remedy = "install NCCL (libnccl2) for this CUDA, start one rank, or use device = \"cpu\"";

void* open() {
  void* handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    fail(ExitCode::usage, "cuda: more than one rank needs NCCL, which does not load: {}; {}", dlerror(), remedy);
  return handle;
}

void* symbol(void* handle, const char* name) {
  void* found = dlsym(handle, name);
  if (found == nullptr) fail(ExitCode::usage, "cuda: this NCCL is too old: {}; {}", dlerror(), remedy);
  return found;
}
#define TRIREME_NCCL(member, function) \
  library.member = reinterpret_cast<decltype(library.member)>(symbol(handle, #function))
#endif

NcclLibrary load() {
  NcclLibrary library;
#ifndef TRIREME_NCCL_LINKED
  void* const handle = open();
#endif
  TRIREME_NCCL(get_version, ncclGetVersion);
  TRIREME_NCCL(get_unique_id, ncclGetUniqueId);
  TRIREME_NCCL(init_rank, ncclCommInitRank);
  TRIREME_NCCL(async_error, ncclCommGetAsyncError);
  TRIREME_NCCL(abort, ncclCommAbort);
  TRIREME_NCCL(destroy, ncclCommDestroy);
  TRIREME_NCCL(error_string, ncclGetErrorString);
  TRIREME_NCCL(last_error, ncclGetLastError);
  TRIREME_NCCL(group_start, ncclGroupStart);
  TRIREME_NCCL(group_end, ncclGroupEnd);
  TRIREME_NCCL(send, ncclSend);
  TRIREME_NCCL(receive, ncclRecv);
  TRIREME_NCCL(all_reduce, ncclAllReduce);
  return library;
}

}  // namespace

const NcclLibrary& nccl() {
  static const NcclLibrary library = load();  // tried again where it threw
  return library;
}

}  // namespace trireme::comm
