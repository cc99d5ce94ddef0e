// Exit codes of every Trireme program: what a job script decides by.
#pragma once

namespace trireme {

enum class ExitCode : int {
  done = 0,
  usage = 64,      // command line or job file is wrong
  data = 65,       // data file or checkpoint is wrong
  internal = 70,   // a plugin's error, or our own
  lost_peer = 71,  // a rank died or hangs: start again
  diverged = 72,   // NaN or Inf in loss or gradients: don't retry
  io = 74,         // a read or write failed
  stopped = 75,    // stopped early, saved, resumable
};

}  // namespace trireme
