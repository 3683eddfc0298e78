#include "worker/instructions/snapshot.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"

namespace troupe {
namespace {

JobSpec CheckpointedJob() {
  JobSpec job = SmallJob();
  job.mutable_checkpoint()->set_directory("/tmp/unused");
  return job;
}

// Of tensors that are cut where slices end, too.
TEST(Snapshot, RanksTogetherCollectEveryElementOnce) {
  for (const bool background : {false, true}) {
    for (const int ranks : {1, 2, 3}) {
      JobSpec job = CheckpointedJob();
      job.mutable_training()->set_global_batch_size(6);
      job.mutable_checkpoint()->set_background(background);
      std::map<std::string, std::vector<int64_t>> shapes;
      std::map<std::string, std::vector<TensorBox>> boxes;
      std::map<std::string, std::vector<float>> whole;
      for (int r = 0; r < ranks; ++r) {
        SmallRank rank(
            job, {.ranks = ranks, .rank = r, .program = Program::CHECKPOINT});
        ASSERT_TRUE(rank.RunAll("K").ok());
        for (const StateTensor& tensor : rank.state().snapshot) {
          shapes[tensor.name] = tensor.shape;
          for (const StateBox& box : tensor.boxes) {
            boxes[tensor.name].push_back(box.whole);
          }
          std::vector<float>& values = whole[tensor.name];
          values.resize(ElementCount(tensor.shape));
          const float* const data =
              reinterpret_cast<float*>(tensor.data.memory());
          for (const SliceRun& run :
               RunsWithin(tensor, 0, static_cast<int64_t>(values.size()))) {
            std::copy_n(data + run.local, run.count,
                        values.begin() + run.whole);
          }
        }
      }
      // Two tables, 12 tensors a block, two of the last norm; each with two
      // moments.
      EXPECT_EQ(boxes.size(), 3u * (2 + 2 * 12 + 2));
      for (const auto& [name, of_tensor] : boxes) {
        EXPECT_EQ(CheckTiling(of_tensor, shapes[name]), absl::OkStatus())
            << name;
      }
      // What one rank has of all of it.
      SmallRank one(job, {.program = Program::CHECKPOINT});
      ASSERT_TRUE(one.RunAll("K").ok());
      for (const StateTensor& tensor : one.state().snapshot) {
        const float* const data =
            reinterpret_cast<float*>(tensor.data.memory()) +
            tensor.boxes.front().begin;
        EXPECT_EQ(whole[tensor.name],
                  std::vector<float>(data, data + tensor.elements))
            << tensor.name;
      }
    }
  }
}

// Of what rests on a disk a thread has seen a part before, which the steps
// since then have changed.
TEST(Snapshot, IsOfTheStateAsItIsNow) {
  JobSpec job = CheckpointedJob();
  job.mutable_checkpoint()->set_background(true);
  SmallRank rank(job, {.program = Program::CHECKPOINT,
                       .change = RestIn(NVME, {"optimizer_moments"})});
  RankState& state = rank.state();
  TierPort step(state.device, &state.memory);
  for (const char now : {'a', 'b'}) {
    const Buffer& moments =
        *FindResident(state.role(), Buffer::OPTIMIZER_STATE, 1);
    const std::string bytes(moments.bytes(), now);
    ASSERT_TRUE(
        step.Write(state.memory.At(moments, 1), bytes.data(), bytes.size())
            .ok());
    ASSERT_TRUE(step.Flush().ok());
    state.snapshot.clear();
    ASSERT_TRUE(rank.RunAll("K").ok());
    int checked = 0;
    for (const StateTensor& tensor : state.snapshot) {
      if (tensor.name != "optimizer.exp_avg.transformer.h.0.ln_1.weight") {
        continue;
      }
      const char* const saved =
          tensor.data.memory() + tensor.boxes.front().begin * sizeof(float);
      EXPECT_EQ(std::string(saved, tensor.elements * sizeof(float)),
                std::string(tensor.elements * sizeof(float), now));
      ++checked;
    }
    EXPECT_EQ(checked, 1);
  }
}

TEST(Snapshot, OfBf16IsOfTheMasterWeights) {
  JobSpec job = CheckpointedJob();
  job.mutable_training()->set_precision("bf16");
  job.mutable_checkpoint()->set_background(false);
  SmallRank rank(job, {.program = Program::CHECKPOINT});
  ASSERT_TRUE(rank.RunAll("K").ok());
  const StateTensor& first = rank.state().snapshot.front();
  EXPECT_EQ(first.name, "transformer.wte.weight");
  EXPECT_EQ(first.data.memory(), rank.Memory<char>(Buffer::MASTER_WEIGHTS, 0));
}

}  // namespace
}  // namespace troupe
