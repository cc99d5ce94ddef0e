// Host words in flight.
#include "core/train/status.h"

#include "core/base/error.h"

namespace trireme::train {

void Status::post(const HostWords& mine) {
  if (pending() == slots_.size())
    fail(ExitCode::internal, "status: a third agreement was posted before the first was fetched");
  Slot& slot = slots_[posted_++ % slots_.size()];
  slot.words = {};
  slot.words.max[0] = mine.stop;
  slot.words.max[1] = mine.committed;
  slot.words.max[2] = mine.moving;
  slot.words.min[0] = mine.written;
  slot.done = group_.agree(slot.words);
}

HostWords Status::fetch() {
  Slot& slot = slots_[fetched_++ % slots_.size()];
  waited_ += slot.done.synchronize();
  const comm::Words& words = slot.words;
  return {words.max[0], words.min[0], words.max[1], words.max[2]};
}

HostWords Status::exchange(const HostWords& mine) {
  post(mine);
  HostWords agreed{};
  while (pending() > 0) agreed = fetch();
  return agreed;
}

}  // namespace trireme::train
