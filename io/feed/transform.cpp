// Applies the steps of a field one after the other, through scratch memory of the calling thread.
#include "io/feed/transform.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/philox.h"
#include "io/feed/transform_steps.h"

namespace trireme::io {
namespace {

using Kind = TransformStep::Kind;

std::span<float> floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

void run_step(const TransformStep& step, std::uint64_t seed, std::uint64_t position, std::span<const std::byte> from,
              std::span<std::byte> to) {
  switch (step.kind) {
    case Kind::scale:
      if (step.from == Dtype::u8) {
        scale_bytes({reinterpret_cast<const std::uint8_t*>(from.data()), from.size()}, step.factor, floats(to));
      } else {
        to_floats(from, step.from, floats(to));
        scale(floats(to), step.factor);
      }
      return;
    case Kind::normalise:
      to_floats(from, step.from, floats(to));
      normalise(floats(to), step.mean, step.inverse);
      return;
    case Kind::to_f32: to_floats(from, step.from, floats(to)); return;
    case Kind::pad_crop: {
      const RandomKey key = random_key(seed, Purpose::transform, position, step.line, 0);
      const std::uint32_t dy = to_below(random_bits(key, 0), 2 * step.pad + 1);
      const std::uint32_t dx = to_below(random_bits(key, 1), 2 * step.pad + 1);
      pad_crop(from, step.picture, step.pad, dy, dx, to);
      return;
    }
    case Kind::flip: {
      const RandomKey key = random_key(seed, Purpose::transform, position, step.line, 0);
      if (to_below(random_bits(key, 0), 2) == 1) {
        flip(from, step.picture, to);
      } else {
        std::memcpy(to.data(), from.data(), to.size());
      }
      return;
    }
  }
}

}  // namespace

struct Transforms::State {
  std::uint64_t seed = 0;
  std::vector<Field> fields;
  std::vector<std::vector<TransformStep>> chains;  // by field
};

Transforms::Transforms(std::span<const std::string> lines, std::span<const Field> stored, std::uint64_t seed,
                       bool random)
    : state_(std::make_unique<State>()) {
  state_->seed = seed;
  state_->fields.assign(stored.begin(), stored.end());
  state_->chains.resize(stored.size());
  for (std::uint32_t number = 0; number < lines.size(); ++number) {
    ParsedTransform parsed = parse_transform(lines[number], number, state_->fields);
    if (parsed.step.random() && !random) continue;
    state_->fields[parsed.field] = std::move(parsed.out);
    state_->chains[parsed.field].push_back(std::move(parsed.step));
  }
}
Transforms::~Transforms() = default;
Transforms::Transforms(Transforms&&) noexcept = default;

std::span<const Field> Transforms::fields() const { return state_->fields; }

void Transforms::apply(std::size_t index, std::uint64_t position, std::span<const std::byte> from,
                       std::span<std::byte> to) const {
  const std::vector<TransformStep>& chain = state_->chains[index];
  if (chain.empty()) {
    std::copy(from.begin(), from.end(), to.begin());
    return;
  }
  thread_local std::array<std::vector<std::byte>, 2> scratch;
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    std::vector<std::byte>& out = scratch[i % 2];
    out.resize(chain[i].bytes_out);
    run_step(chain[i], state_->seed, position, from, out);
    from = out;
  }
  run_step(chain.back(), state_->seed, position, from, to);
}

}  // namespace trireme::io
