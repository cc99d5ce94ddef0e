// The command line: one file a subcommand. Each adds itself to the program.
#pragma once

#include "core/cli/command.h"

namespace trireme::cli {

void add_launch(Command program);
void add_train(Command program);
void add_eval(Command program);
void add_predict(Command program);
void add_pack(Command program);
void add_inspect(Command program);
void add_plugin(Command program);
void add_bench(Command program);
void add_version(Command program);

// All of them.
void add_all(Command program);

// Parses and runs; turns every exception into a message and an exit code.
[[nodiscard]] int main(int argc, char** argv);

}  // namespace trireme::cli
