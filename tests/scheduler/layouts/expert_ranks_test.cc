#include "scheduler/layouts/expert_ranks.h"

#include <algorithm>
#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/plan/sharing.h"
#include "scheduler/layouts/replicas.h"

namespace troupe {
namespace {

ParallelismSpec Of(const std::string& text) {
  ParallelismSpec parallelism;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString(text, &parallelism));
  return parallelism;
}

const std::string kSequence = " tensor: 2 sequence_parallel: true";

TEST(ExpertRanks, AreOfDataThenOfContextThenOfTensor) {
  const auto ranks = [](const std::string& text) {
    return ExpertRanksOf(Of("context: 2 " + text + kSequence));
  };
  const ExpertRanks of_data = {.data = 2};
  EXPECT_EQ(ranks("data: 4 expert: 2"), of_data);
  const ExpertRanks with_context = {.data = 4, .context = true};
  EXPECT_EQ(ranks("data: 4 expert: 8"), with_context);
  const ExpertRanks with_tensor = {.data = 3, .context = true, .tensor = true};
  EXPECT_EQ(ranks("data: 3 expert: 12"), with_tensor);
  const ExpertRanks of_context = {.data = 1, .context = true};
  EXPECT_EQ(ranks("data: 3 expert: 2"), of_context);
  EXPECT_FALSE(ranks("data: 3 expert: 8").fits);
  EXPECT_EQ(ranks("data: 4 expert: 1"), ExpertRanks());
  EXPECT_EQ(ranks(""), ExpertRanks());
}

TEST(ExpertRanks, OfTensorComeFirstWhereTheyHaveWholeExperts) {
  const ExpertRanks whole = {.data = 2, .tensor = true};
  EXPECT_EQ(ExpertRanksOf(Of("data: 4 expert: 4 expert_tensor: 1" + kSequence)),
            whole);
  const ExpertRanks columns = {.data = 4};
  EXPECT_EQ(ExpertRanksOf(Of("data: 4 expert: 4 expert_tensor: 2" + kSequence)),
            columns);
  EXPECT_FALSE(
      ExpertRanksOf(Of("data: 4 expert: 8 expert_tensor: 2" + kSequence)).fits);
}

// Without sequence_parallel they have the same tokens.
TEST(ExpertRanks, AreNotOfTensorAlone) {
  EXPECT_FALSE(ExpertRanksOf(Of("tensor: 2 expert: 2")).fits);
  EXPECT_EQ(ExpertSizes(Of("data: 2 tensor: 2")), std::vector<int>({2}));
}

TEST(ExpertRanks, SizesAreWhatFits) {
  const ParallelismSpec parallelism = Of("data: 6 context: 2" + kSequence);
  EXPECT_EQ(ExpertSizes(parallelism),
            std::vector<int>({2, 3, 4, 6, 8, 12, 24}));
  for (int expert = 2; expert <= 24; ++expert) {
    ParallelismSpec asked = parallelism;
    asked.set_expert(expert);
    const std::vector<int> sizes = ExpertSizes(parallelism);
    const bool listed =
        std::find(sizes.begin(), sizes.end(), expert) != sizes.end();
    EXPECT_EQ(ExpertRanksOf(asked).fits, listed) << expert;
  }
}

TEST(ExpertRanks, OnlyThoseOfDataAreFewerReplicas) {
  EXPECT_EQ(ReplicasOf(Of("data: 4 expert: 2")), 2);
  EXPECT_EQ(ReplicasOf(Of("data: 4 expert: 8" + kSequence)), 1);
  EXPECT_EQ(ReplicasOf(Of("data: 4 expert: 2 expert_tensor: 1" + kSequence)),
            4);
  EXPECT_EQ(SharingOfDataText(Of("data: 4 expert: 2 expert_tensor: 1")),
            "expert: 2, expert_tensor: 1");
}

}  // namespace
}  // namespace troupe
