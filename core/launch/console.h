// What the ranks and mpirun write to stderr: passed on line by line, with the first cause kept.
#pragma once

#include <string>
#include <vector>

namespace trireme::launch {

class Console {
 public:
  void line(const std::string& text);
  void end();  // passes on what is still held

  // The first error line of a rank; where no rank could say anything, what mpirun or srun noticed; or empty.
  [[nodiscard]] const std::string& first_cause() const { return cause_.empty() ? noticed_ : cause_; }

 private:
  void keep_cause(const std::string& text);
  std::string cause_, noticed_;
  // mpirun's messages stand between lines of dashes. Those that only say that a rank's exit code was not 0 are dropped:
  // a planned stop has one, and errors are told by the ranks.
  std::vector<std::string> held_;
};

}  // namespace trireme::launch
