// Group: queues a collective on the communication stream, and what waits for one.
#include "core/comm/group.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"

namespace trireme::comm {

namespace {

// `body` runs on the communication thread; the group outlives it, since callers wait for the event.
template <class Body>
device::Event queue(GroupImpl& group, const Body& body) {
  device::Stream stream = group.host_stream();
  stream.run(body);
  return stream.record();
}

template <class Body>
device::Event queue_tensors(GroupImpl& group, const Body& body) {
  device::Stream stream = group.stream();
  if (group.queues()) {
    body();
  } else {
    stream.run(body);
  }
  return stream.record();
}

}  // namespace

device::Event Group::tree_reduce(std::span<float> data, std::span<double> tile_squares) {
  if (!tile_squares.empty() && tile_squares.size() != tiles_of(data.size()))
    fail(ExitCode::internal, "tree_reduce: {} tile squares for {} tiles", tile_squares.size(), tiles_of(data.size()));
  return queue_tensors(*impl_, [impl = impl_.get(), data, tile_squares] { impl->tree_reduce(data, tile_squares); });
}
device::Event Group::tree_reduce(std::span<double> data) {
  return queue_tensors(*impl_, [impl = impl_.get(), data] { impl->tree_reduce(data); });
}
device::Event Group::all_reduce(std::span<float> data) {
  return queue_tensors(*impl_, [impl = impl_.get(), data] { impl->all_reduce(data); });
}
device::Event Group::all_reduce(std::span<double> data) {
  return queue_tensors(*impl_, [impl = impl_.get(), data] { impl->all_reduce(data); });
}
device::Event Group::agree(Words& words) {
  return queue(*impl_, [impl = impl_.get(), agreed = &words] { impl->agree(*agreed); });
}
device::Event Group::broadcast(std::span<std::byte> data, int root) {
  return queue(*impl_, [impl = impl_.get(), data, root] { impl->broadcast(data, root); });
}
device::Event Group::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  return queue(*impl_, [impl = impl_.get(), mine, all] { impl->all_gather(mine, all); });
}

void Group::broadcast_now(std::string& text, int root) {
  std::uint64_t length = text.size();
  broadcast(std::as_writable_bytes(std::span(&length, 1)), root).synchronize();
  text.resize(length);
  broadcast(std::as_writable_bytes(std::span(text)), root).synchronize();
}

std::vector<std::string> Group::all_gather_now(const std::string& mine) {
  const auto ranks = static_cast<std::size_t>(size());
  const std::uint64_t length = mine.size();
  std::vector<std::uint64_t> lengths(ranks);
  all_gather(std::as_bytes(std::span(&length, 1)), std::as_writable_bytes(std::span(lengths))).synchronize();
  const std::size_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::string padded = mine;
  padded.resize(longest);
  std::string all(longest * ranks, '\0');
  all_gather(std::as_bytes(std::span(padded)), std::as_writable_bytes(std::span(all))).synchronize();
  std::vector<std::string> texts;
  texts.reserve(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) texts.push_back(all.substr(rank * longest, lengths[rank]));
  return texts;
}

void Group::barrier_now() {
  queue(*impl_, [impl = impl_.get()] { impl->barrier(); }).synchronize();
}

}  // namespace trireme::comm
