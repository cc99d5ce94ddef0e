// Errors that all ranks meet alike: one message, an orderly end, no abort.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/comm/group.h"

namespace trireme::train {

// Thrown by every rank with the same code and text.
class AlikeError : public Error {
  using Error::Error;
};

namespace detail {
inline std::string told(const Error& error) {
  return fmt::format("{}\n{}", static_cast<int>(error.code()), error.what());
}
}  // namespace detail

// Runs `body` on rank 0 and returns its text on every rank; what it throws, every rank throws as AlikeError.
template <class Body>
[[nodiscard]] std::string on_rank_0(comm::Group& group, const Body& body) {
  std::string text;
  if (group.rank() == 0) {
    try {
      text = fmt::format("+{}", body());  // told from an error, which begins with its code
    } catch (...) {
      text = detail::told(as_error(std::current_exception()));
    }
  }
  group.broadcast_now(text, 0);
  if (text.front() == '+') return text.substr(1);
  const std::size_t cut = text.find('\n');
  throw AlikeError(static_cast<ExitCode>(std::stoi(text.substr(0, cut))), text.substr(cut + 1));
}

// comm::check_alike; what it throws all ranks meet alike.
inline void all_alike(comm::Group& group, std::span<const std::pair<std::string, std::string>> values) {
  try {
    comm::check_alike(group, values);
  } catch (const Error& error) {
    throw AlikeError(error.code(), error.what());
  }
}

// Runs `body` on every rank; where some fail, every rank throws what the first of them threw, with its rank.
template <class Body>
void on_all_ranks(comm::Group& group, const Body& body) {
  std::string mine;
  try {
    body();
  } catch (...) {
    mine = detail::told(as_error(std::current_exception()));
  }
  const std::vector<std::string> all = group.all_gather_now(mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    const std::size_t cut = all[rank].find('\n');
    const std::string text = all[rank].substr(cut + 1);
    throw AlikeError(static_cast<ExitCode>(std::stoi(all[rank].substr(0, cut))),
                     rank == 0 ? text : fmt::format("rank {}: {}", rank, text));
  }
}

}  // namespace trireme::train
