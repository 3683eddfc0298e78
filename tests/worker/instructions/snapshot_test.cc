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
          for (const ParameterRun& run :
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
