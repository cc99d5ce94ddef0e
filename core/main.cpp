// The program `trireme`: settles the environment of threads, then hands over to the command line.
#include "core/base/threads.h"
#include "core/cli/cli.h"

int main(int argc, char** argv) {
  trireme::settle_thread_environment(argv);
  return trireme::cli::main(argc, argv);
}
