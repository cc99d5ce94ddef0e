// Batches, epochs and evaluation rounds: arithmetic checked against counting.
#include "core/train/plan.h"

#include <gtest/gtest.h>

#include <set>

#include "core/base/error.h"

namespace trireme::train {
namespace {

Job job_of(std::int64_t batch, std::int64_t micro_batches, std::int64_t epochs) {
  Job job;
  job.train.batch = batch;
  job.train.micro_batches = micro_batches;
  job.train.epochs = epochs;
  return job;
}

TEST(Plan, EveryPositionComesOnceOnAnyNumberOfRanks) {
  for (const int world : {1, 2, 4}) {
    std::set<std::uint64_t> seen;
    for (int rank = 0; rank < world; ++rank) {
      const Plan plan = make_plan(job_of(12, 4, 2), world, rank, 50, 0);
      EXPECT_EQ(plan.total_steps, 9u);  // ceil(2·50 ÷ 12)
      const io::Sequence sequence = plan.training(0);
      for (std::uint64_t k = 0;; ++k) {
        const auto at = sequence(k);
        if (!at) break;
        for (std::int64_t i = 0; i < at->rows; ++i)
          EXPECT_TRUE(seen.insert(at->first + static_cast<std::uint64_t>(i)).second);
      }
    }
    EXPECT_EQ(seen.size(), 9u * 12u);
    EXPECT_EQ(*seen.rbegin(), 9u * 12u - 1);
  }
}

TEST(Plan, AResumeGoesOnWithTheNextMicroBatch) {
  const Plan plan = make_plan(job_of(8, 4, 3), 2, 1, 40, 0);
  const io::Sequence whole = plan.training(0), rest = plan.training(5);
  for (std::uint64_t k = 0; k < 10; ++k) {
    const auto a = whole(k + 5 * plan.locals), b = rest(k);
    ASSERT_EQ(a.has_value(), b.has_value());
    if (a) {
      EXPECT_EQ(a->first, b->first);
    }
  }
}

TEST(Plan, EpochsEndWithTheFirstStepThatCompletesThem) {
  const Plan plan = make_plan(job_of(7, 1, 4), 1, 0, 30, 0);
  std::vector<std::uint64_t> ends;
  for (std::uint64_t s = 0; s < plan.total_steps; ++s)
    if (plan.ends_epoch(s)) ends.push_back(s);
  // (s+1)·7 ≥ 30, 60, 90, 120 first at s = 4, 8, 12, 17.
  EXPECT_EQ(ends, (std::vector<std::uint64_t>{4, 8, 12, 17}));
  EXPECT_EQ(plan.total_steps, 18u);
}

TEST(Plan, RefusesWhatDoesNotFit) {
  const auto text = [](const Job& job, int world, std::int64_t samples, std::uint64_t recorded) {
    try {
      (void)make_plan(job, world, 0, samples, recorded);
    } catch (const Error& error) {
      return std::to_string(static_cast<int>(error.code())) + " " + error.what();
    }
    return std::string("accepted");
  };
  EXPECT_NE(text(job_of(10, 4, 1), 1, 100, 0).find("train.batch = 10 is no multiple of train.micro_batches = 4"),
            std::string::npos);
  EXPECT_NE(text(job_of(12, 4, 1), 3, 100, 0).find("3 ranks do not divide train.micro_batches = 4"), std::string::npos);
  EXPECT_NE(text(job_of(12, 0, 1), 4, 100, 2).find("64 4 ranks do not divide"), std::string::npos);
  EXPECT_EQ(text(job_of(12, 4, 1), 1, 11, 0).substr(0, 3), "65 ");
  EXPECT_NE(text(job_of(12, 4, 1), 1, 11, 0).find("11 samples, fewer than one batch of train.batch = 12"),
            std::string::npos);
  EXPECT_TRUE(make_plan(job_of(12, 6, 1), 2, 0, 100, 0).same_world);
  EXPECT_FALSE(make_plan(job_of(12, 4, 1), 2, 0, 100, 0).same_world);
}

TEST(EvalPlan, EverySampleOnceAndTheLastRoundShort) {
  for (const int world : {1, 2, 4}) {
    std::set<std::uint64_t> seen;
    std::uint64_t rounds = 0;
    for (int rank = 0; rank < world; ++rank) {
      const Plan plan = make_plan(job_of(16, 4, 1), world, rank, 64, 0);
      const EvalPlan eval = make_eval_plan(job_of(16, 4, 1), plan, 37);
      rounds = eval.rounds();
      const io::Sequence sequence = eval.sequence();
      std::uint64_t k = 0;
      for (std::uint64_t round = 0; round < rounds; ++round)
        for (std::uint32_t i = 0; i < eval.locals; ++i) {
          const io::MicroBatch at = eval.at(round, i);
          if (at.rows == 0) continue;
          const auto next = sequence(k++);
          ASSERT_TRUE(next);
          EXPECT_EQ(next->first, at.first);
          EXPECT_EQ(next->rows, at.rows);
          for (std::int64_t row = 0; row < at.rows; ++row)
            EXPECT_TRUE(seen.insert(at.first + static_cast<std::uint64_t>(row)).second);
        }
      EXPECT_FALSE(sequence(k));
    }
    EXPECT_EQ(rounds, 3u);
    EXPECT_EQ(seen.size(), 37u);
  }
}

}  // namespace
}  // namespace trireme::train
