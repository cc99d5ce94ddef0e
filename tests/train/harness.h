// One rank's step in this process: conditional-net or convnet on made data, everything that the loop gives it.
#pragma once

#include <cmath>
#include <memory>
#include <string>

#include "core/comm/bootstrap.h"
#include "core/train/session.h"
#include "core/train/step.h"
#include "tests/jobs/make_data.h"
#include "tests/jobs/run_job.h"

namespace trireme::train {

class Harness {
 public:
  Harness(const std::string& plugin, std::int64_t batch, std::int64_t micro_batches, std::int64_t steps)
      : folder_("step") {
    tests::make_data(folder_.path(), "train", {.files = 2, .samples = 256});
    job.plugin = fmt::format("{}/{}.so", TRIREME_PLUGINS, plugin);
    job.device = "cpu";
    job.data.fields = {{"image", "/image"}, {"label", "/label"}};
    job.data.train = {folder_.path() / "train-*.h5"};
    job.data.transform = {"image: scale 1/255"};
    job.train.batch = batch;
    job.train.micro_batches = micro_batches;
    job.train.steps = steps;
    job.train.threads = 1;
    job.train.bucket_kib = 64;
    job.optimizer.kind = "adamw";
    job.optimizer.lr = 1e-3;
    group = comm::connect({});
    device = choose_device(job, group);
    settle_threads(job, group, 0);
    data = open_data(group, job, job.data.train);
    plan = make_plan(job, group.size(), group.rank(), data->samples(), 0);
    model = open_model(group, job, device, fed_fields(job, *data), plan.rows);
    optimizer = std::make_unique<optim::Optimizer>(optim::rule_of(job.optimizer, plan.total_steps), device.device,
                                                   model->layout().parameter_elements);
    block = std::make_unique<device::StepBlockRing>(device.device);
    reports = std::make_unique<Reports>(model->metric_names().size(), device.device);
    sync = std::make_unique<GradSync>(group, plan, model->layout(), model->metric_names().size(),
                                      static_cast<std::uint64_t>(job.train.bucket_kib) << 10, device.device);
    feed = open_feed(job, data, {true, plan.rows}, plan.training(0), device.device);
    step = std::make_unique<Step>(plan, 1, device.device->compute_stream(), *block, *model, *sync, *optimizer, *reports,
                                  group);
  }

  Job job;
  comm::Group group;
  DeviceChoice device;
  std::shared_ptr<const io::Dataset> data;
  Plan plan;
  std::unique_ptr<plugin::Model> model;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<device::StepBlockRing> block;
  std::unique_ptr<Reports> reports;
  std::unique_ptr<GradSync> sync;
  std::unique_ptr<io::Feed> feed;
  std::unique_ptr<Step> step;

 private:
  tests::TestFolder folder_;
};

}  // namespace trireme::train
