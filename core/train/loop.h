// The steps of a run: step, report, save, evaluate, stop; every decision taken by all ranks alike.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/job.h"
#include "core/comm/group.h"
#include "core/optim/optimizer.h"
#include "core/plugin/model.h"
#include "core/train/evaluator.h"
#include "core/train/grad_sync.h"
#include "core/train/memory_plan.h"
#include "core/train/plan.h"
#include "core/train/reports.h"
#include "core/train/resume.h"
#include "core/train/run_folder.h"
#include "core/train/status.h"
#include "core/train/step.h"
#include "io/checkpoint/saver.h"
#include "io/telemetry/recorder.h"

namespace trireme::train {

// What a loop works with; owned by train().
struct LoopParts {
  const Job& job;
  comm::Group group;
  Plan plan;
  std::shared_ptr<device::Device> device;
  std::shared_ptr<const io::Dataset> train_data, eval_data;  // eval_data may be null
  plugin::Model& model;
  optim::Optimizer& optimizer;
  device::StepBlockRing& block;
  RunFolder& folder;
  std::map<std::string, std::string> identity, notes;  // what checkpoints record (session.h)
  std::int64_t threads = 1;
};

class Loop {
 public:
  explicit Loop(const LoopParts& parts);

  // From where `manifest` stands (none: the beginning) to the end or a stop; returns the exit code. Throws AlikeError
  // for a diverged run.
  [[nodiscard]] int run(const std::optional<io::Manifest>& manifest);

 private:
  void begin(const std::optional<io::Manifest>& manifest);
  void report(std::size_t keep);     // records finished steps; keep: how many may stay under way
  void act(const HostWords& words);  // commit and stop, as agreed
  [[nodiscard]] HostWords mine();
  [[nodiscard]] bool evaluation_due(std::uint64_t done) const;
  void evaluate();  // at the boundary after step_ steps
  void save();
  void settle();  // words without steps until nothing is uncommitted
  void summarise();

  LoopParts parts_;
  Status status_;
  Reports reports_;
  GradSync sync_;
  Step step_page_;
  io::Saver saver_;
  io::Recorder recorder_;
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<io::Feed> feed_;

  std::uint64_t step_ = 0;  // steps done
  std::uint64_t start_step_ = 0;
  std::uint64_t pending_save_ = 0;  // step of the save that is not committed yet
  std::uint64_t last_saved_ = 0;
  std::uint64_t moved_ = 0;          // the writer's blocks, as last told
  bool unsaved_evaluation_ = false;  // its values are in no checkpoint yet
  bool save_due_ = false, stop_ = false, best_is_new_ = false;
  Best best_;
  std::optional<Evaluation> last_evaluation_;
  std::uint64_t last_evaluated_ = ~std::uint64_t{0};
  double started_ = 0, first_step_seconds_ = 0, stalled_before_ = 0, waited_before_ = 0, comm_before_ = 0;
  double evaluating_ = 0;  // of the step under way
  io::StepTimes times_;    // not yet recorded
  MemoryPlan memory_;
};

}  // namespace trireme::train
