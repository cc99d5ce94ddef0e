// Snapshot on the compute stream, slice and commit on a writer thread.
#include "io/checkpoint/saver.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/fault.h"
#include "core/base/file.h"
#include "core/device/thread_stream.h"
#include "io/checkpoint/folder.h"
#include "io/checkpoint/format.h"
#include "io/checkpoint/slice.h"

namespace trireme::io {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// A peer on another host has flushed its slice; caches of a network file system may show it a little later.
constexpr std::chrono::seconds longest_look{10};

void make_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
    fail_errno(errno, folder.string() + ": cannot be created");
  }
}

void await_file(const fs::path& file) {
  const auto until = Clock::now() + longest_look;
  struct stat status {};
  while (::stat(file.c_str(), &status) != 0) {
    if (errno != ENOENT) fail_errno(errno, file.string() + ": cannot be looked at");
    if (Clock::now() > until) {
      fail(ExitCode::io, "{}: its rank has written it, but it cannot be seen here; is the folder shared by all hosts?",
           file.string());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

struct Saver::State {
  SaverOptions options;
  std::shared_ptr<device::Device> device;
  // One staging buffer for each arena, kept between saves. The compute thread fills them (through its stream), then
  // they are the writer's until the commit.
  struct Staged {
    device::PinnedBuffer memory;
    std::uint64_t bytes = 0;
  };
  std::vector<Staged> staged;
  Manifest manifest;                     // of the running save; written before its tasks are queued
  std::optional<std::uint64_t> pending;  // compute thread's: a step not yet committed
  bool commit_asked = false;             // compute thread's: of the last snapshot
  double stalled = 0;
  std::atomic<std::uint64_t> written{0}, committed{0}, moved{0};
  mutable std::mutex mutex;  // guards error
  std::exception_ptr error;
  device::Stream writer;  // last: its thread ends before the rest goes

  void rethrow() const {
    const std::lock_guard lock(mutex);
    if (error) std::rethrow_exception(error);
  }
  [[nodiscard]] bool failed() const {
    const std::lock_guard lock(mutex);
    return error != nullptr;
  }
  // On the writer: after a failure nothing further is done.
  template <class Body>
  void attempt(const Body& body) noexcept {
    if (failed()) return;
    try {
      body();
    } catch (const Error& failure) {
      keep(std::make_exception_ptr(Error(failure.code(), fmt::format("rank {}: checkpoint of step {}: {}", options.rank,
                                                                     manifest.scalars.step, failure.what()))));
    } catch (...) {
      keep(std::current_exception());
    }
  }
  void keep(std::exception_ptr what) {
    const std::lock_guard lock(mutex);
    error = std::move(what);
  }
  [[nodiscard]] fs::path attempt_folder() const {
    return options.folder / attempt_name(manifest.scalars.step, options.attempt);
  }
  void describe(const Scalars& scalars, std::span<const ArenaState> arenas, bool best);
  void write();
  void commit();
};

// The manifest but for its slices.
void Saver::State::describe(const Scalars& scalars, std::span<const ArenaState> arenas, bool best) {
  manifest = {};
  manifest.format = format_version;
  manifest.best = best;
  manifest.scalars = scalars;
  for (const ArenaState& arena : arenas) {
    if (arena.name.empty() || arena.name == "blocks" || arena.name.find('/') != std::string::npos) {
      fail(ExitCode::internal, "an arena cannot be called '{}'", arena.name);
    }
    manifest.arenas.push_back({arena.name, arena.dtype, arena.elements(), arena.entries});
  }
}

void Saver::State::write() {
  const auto world = static_cast<std::uint64_t>(options.world_size), rank = static_cast<std::uint64_t>(options.rank);
  make_folder(attempt_folder());
  std::vector<SlicePart> parts;
  for (std::size_t i = 0; i < staged.size(); ++i) {
    parts.push_back({manifest.arenas[i].name, manifest.arenas[i].dtype,
                     staged[i].memory.span<const std::byte>().first(staged[i].bytes)});
  }
  write_slice(attempt_folder() / slice_name(rank, world), parts,
              {{"step", std::to_string(manifest.scalars.step)}, {"slice", slice_name(rank, world)}},
              [this] { ++moved; });
  written.store(manifest.scalars.step);
}

void Saver::State::commit() {
  const auto world = static_cast<std::uint64_t>(options.world_size);
  const fs::path folder = attempt_folder();
  for (std::uint64_t index = 0; index < world; ++index) {
    await_file(folder / slice_name(index, world));
    manifest.slices.push_back(describe_slice(folder, manifest.arenas, index, world));
    ++moved;
  }
  fault::point("before_manifest");
  File file(folder / manifest_name, O_WRONLY | O_CREAT | O_EXCL);
  const std::string text = manifest_text(manifest);
  file.write(std::as_bytes(std::span(text)));
  file.sync();
  file.close();
  sync_folder(folder);
  fault::point("after_manifest");
  StepName name{manifest.scalars.step, 0};
  for (const fs::path& other : list_checkpoints(options.folder)) {
    const auto there = parse_step_name(other.filename().string());
    if (there && there->step == name.step) name.revision = std::max(name.revision, there->revision + 1);
  }
  if (options.check) options.check();
  durable_rename(folder, options.folder / text_of(name));  // the commit point
  fault::point("after_rename");
  committed.store(manifest.scalars.step);
  if (options.check) options.check();
  apply_retention(options.folder, options.keep_last, options.attempt, name);
}

Saver::Saver(const SaverOptions& options, std::shared_ptr<device::Device> device) : state_(std::make_unique<State>()) {
  State& s = *state_;
  if (options.keep_last < 2) {
    fail(ExitCode::usage,
         "checkpoint.keep_last is {}; at least 2 are kept, so that one damaged checkpoint does not "
         "end a run",
         options.keep_last);
  }
  s.options = options;
  s.device = std::move(device);
  make_folders(options.folder);
  // Not the device's own kind of stream: writing is the host's work for seconds, on every device.
  s.writer = device::Stream(std::make_shared<device::ThreadStream>("trm-writer"));
}

Saver::~Saver() = default;

void Saver::snapshot(const Scalars& scalars, std::span<const ArenaState> arenas, bool best, device::Stream& compute) {
  State& s = *state_;
  const auto begin = Clock::now();
  s.rethrow();
  if (busy()) {
    fail(ExitCode::internal, "snapshot of step {} while step {} is not committed", scalars.step, *s.pending);
  }
  s.writer.synchronize();  // retention of the last save may still run
  s.rethrow();
  s.describe(scalars, arenas, best);
  s.staged.resize(arenas.size());
  for (std::size_t i = 0; i < arenas.size(); ++i) {
    const Range range =
        arenas[i].slice(static_cast<std::uint64_t>(s.options.rank), static_cast<std::uint64_t>(s.options.world_size));
    const std::size_t size = size_of(arenas[i].dtype);
    State::Staged& staged = s.staged[i];
    staged.bytes = range.size() * size;
    if (staged.bytes == 0) continue;
    if (staged.memory.bytes() < staged.bytes) staged.memory = device::PinnedBuffer(s.device, staged.bytes);
    compute.copy(staged.memory.span<std::byte>().first(staged.bytes),
                 arenas[i].memory.subspan(range.begin * size, staged.bytes));
  }
  s.pending = scalars.step;
  s.commit_asked = false;
  // A step saved twice (a planned save, then the last one) is not written until it is written again.
  if (s.written.load() == scalars.step) s.written.store(0);
  if (s.committed.load() == scalars.step) s.committed.store(0);
  s.writer.wait(compute.record());
  State* const state = &s;
  s.writer.run([state] { state->attempt([state] { state->write(); }); });
  s.stalled += std::chrono::duration<double>(Clock::now() - begin).count();
}

std::uint64_t Saver::written() const {
  state_->rethrow();
  return state_->written.load();
}

void Saver::commit(std::uint64_t step) {
  State& s = *state_;
  s.rethrow();
  if (s.commit_asked && step == s.manifest.scalars.step) return;  // under way or done
  if (s.pending != step) {
    fail(ExitCode::internal, "commit of step {}, but {}", step,
         s.pending ? fmt::format("step {} is being saved", *s.pending) : "nothing is being saved");
  }
  s.commit_asked = true;
  if (s.options.rank != 0) {
    s.committed.store(step);
    s.pending.reset();
    return;
  }
  State* const state = &s;
  s.writer.run([state] { state->attempt([state] { state->commit(); }); });
}

std::uint64_t Saver::committed() const {
  state_->rethrow();
  return state_->committed.load();
}

std::uint64_t Saver::moved() const { return state_->moved.load(); }

bool Saver::busy() const {
  State& s = *state_;
  if (s.pending && s.committed.load() == *s.pending) s.pending.reset();
  return s.pending.has_value();
}

void Saver::wait() {
  state_->writer.synchronize();
  state_->rethrow();
}

double Saver::stalled() const { return state_->stalled; }

}  // namespace trireme::io
