#include "scheduler/cluster/expert_loads.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

Sums SumsOf(int layers, int experts) {
  Sums sums = FirstSums();
  for (int layer = 0; layer < layers; ++layer) {
    Sum* tokens = sums.Add();
    tokens->set_name(kExpertTokensSum);
    tokens->set_unit(layer + 1);
    tokens->set_elements(experts);
  }
  return sums;
}

google::protobuf::RepeatedField<double> Values(const Sums& sums) {
  google::protobuf::RepeatedField<double> values;
  for (int i = 0; i < SumElements(sums); ++i) values.Add(i);
  return values;
}

TEST(ExpertLoads, APointHasTheChoicesOfEachLayer) {
  const Sums sums = SumsOf(2, 3);
  const auto point = ExpertLoads::PointOf(7, sums, Values(sums));
  ASSERT_TRUE(point.has_value());
  EXPECT_EQ(point->first, 7);
  EXPECT_EQ(point->last, 7);
  ASSERT_EQ(point->layers.size(), 2u);
  const auto before = static_cast<float>(SumElements(FirstSums()));
  EXPECT_EQ(point->layers[1].unit, 2);
  EXPECT_EQ(point->layers[1].choices,
            (std::vector<float>{before + 3, before + 4, before + 5}));
}

TEST(ExpertLoads, NothingIsMadeOfOtherSums) {
  EXPECT_FALSE(
      ExpertLoads::PointOf(1, FirstSums(), Values(FirstSums())).has_value());
  EXPECT_FALSE(ExpertLoads::PointOf(1, SumsOf(1, 2), Values(SumsOf(1, 3)))
                   .has_value());
  EXPECT_FALSE(ExpertLoads::PointOf(1, SumsOf(1, 2), {}).has_value());
}

TEST(ExpertLoads, NoChoiceIsLostWhereStepsShareAPoint) {
  const Sums sums = SumsOf(2, 3);
  ExpertLoads loads;
  constexpr int64_t kSteps = 1000;
  for (int64_t step = 1; step <= kSteps; ++step) {
    loads.Add(*ExpertLoads::PointOf(step, sums, Values(sums)));
    ASSERT_LE(loads.points().size(), ExpertLoads::kPointsMax);
  }
  EXPECT_EQ(loads.stride(), 8);
  float all = 0;
  for (const ExpertLoads::Point& point : loads.points()) {
    all += point.layers[0].choices[2];
  }
  EXPECT_EQ(all, kSteps * Values(sums)[SumElements(FirstSums()) + 2]);
}

TEST(ExpertLoads, OfVeryManyExpertsFewPointsAreKept) {
  const Sums sums = SumsOf(60, 256);
  ExpertLoads loads;
  for (int64_t step = 1; step <= 100; ++step) {
    loads.Add(*ExpertLoads::PointOf(step, sums, Values(sums)));
    ASSERT_LE(loads.points().size() * 60 * 256, ExpertLoads::kCellsMax);
  }
  EXPECT_EQ(loads.points().back().last, 100);
}

TEST(ExpertLoads, StepsThatRunAgainTakeThePlaceOfThoseBefore) {
  const Sums sums = SumsOf(1, 2);
  ExpertLoads loads;
  for (int64_t step = 1; step <= 5; ++step) {
    loads.Add(*ExpertLoads::PointOf(step, sums, Values(sums)));
  }
  loads.Add(*ExpertLoads::PointOf(3, sums, Values(sums)));
  ASSERT_EQ(loads.points().size(), 3u);
  EXPECT_EQ(loads.points().back().last, 3);
}

}  // namespace
}  // namespace troupe
