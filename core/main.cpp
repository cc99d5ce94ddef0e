// The program `trireme`: settles signals and the environment of threads, then hands over to the command line.
#include <string_view>

#include "core/base/threads.h"
#include "core/cli/cli.h"
#include "core/launch/stop.h"

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "train" || command == "eval") trireme::launch::hold_stop_requests();  // those that can stop in order
  trireme::settle_thread_environment(argv);
  return trireme::cli::main(argc, argv);
}
