#include "scheduler/cluster/compare_scalars.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"

namespace troupe {
namespace {

using Reports = std::map<int, StepReport>;

// Those of every plan, and one of unit 3 with two elements.
Sums PlanSums() {
  Sums sums = FirstSums();
  Sum& sum = *sums.Add();
  sum.set_name("loads");
  sum.set_unit(3);
  sum.set_elements(2);
  return sums;
}

// Of as many ranks as there are reports.
std::optional<ScalarDifference> Compare(const Reports& reports) {
  return CompareScalars(reports, static_cast<int>(reports.size()), PlanSums());
}

Reports Alike(int ranks) {
  Reports reports;
  for (int rank = 0; rank < ranks; ++rank) {
    reports[rank].mutable_record()->set_loss(2.5);
    reports[rank].mutable_record()->set_grad_norm(1.25);
    for (const double sum : {2500.0, 1000.0, 1.5625, 0.0, 0.0, 7.0, 8.0}) {
      reports[rank].add_sums(sum);
    }
    // Of each rank, whatever they are.
    reports[rank].mutable_record()->set_step_seconds(rank);
  }
  return reports;
}

double WithLastBitFlipped(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bits ^= 1;
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

TEST(CompareScalars, AllAgree) {
  EXPECT_FALSE(Compare({}).has_value());
  for (const int ranks : {1, 2, 5}) {
    EXPECT_FALSE(Compare(Alike(ranks)).has_value());
  }
}

TEST(CompareScalars, OneBitNamesTheRank) {
  for (int wrong = 0; wrong < 4; ++wrong) {
    Reports reports = Alike(4);
    reports[wrong].mutable_record()->set_grad_norm(WithLastBitFlipped(1.25));
    const auto difference = Compare(reports);
    ASSERT_TRUE(difference.has_value());
    EXPECT_EQ(difference->wrong, std::vector<int>({wrong}));
    EXPECT_EQ(difference->agreed, wrong == 0 ? 1 : 0);
    EXPECT_EQ(difference->others, wrong);
    EXPECT_EQ(difference->what, "gradient norm 1.2500000000000002 where rank " +
                                    std::to_string(difference->agreed) +
                                    " has 1.25");
  }
}

// What no number of a record shows.
TEST(CompareScalars, NamesTheSumThatDiffers) {
  const auto what = [](int index, double value) {
    Reports reports = Alike(3);
    reports[2].set_sums(index, value);
    const auto difference = Compare(reports);
    if (!difference.has_value()) return std::string("no difference");
    EXPECT_EQ(difference->wrong, std::vector<int>({2}));
    return difference->what;
  };
  EXPECT_EQ(what(1, 999), "sum tokens 999 where rank 0 has 1000");
  EXPECT_EQ(what(3, 1), "sum stop 1 where rank 0 has 0");
  EXPECT_EQ(what(5, WithLastBitFlipped(7)),
            "sum loads of unit 3, element 0, 7.0000000000000009 where rank 0 "
            "has 7");
  EXPECT_EQ(what(6, 9), "sum loads of unit 3, element 1, 9 where rank 0 has 8");
  Reports reports = Alike(3);
  reports[1].mutable_sums()->RemoveLast();
  EXPECT_EQ(Compare(reports)->what, "6 sums where rank 0 has 7");
}

// What is of single sequences comes as a checksum (StepReport).
TEST(CompareScalars, SequencesAreComparedByTheirChecksum) {
  Reports reports = Alike(3);
  for (auto& [rank, report] : reports) report.set_sequences_crc32c(0xabc);
  EXPECT_FALSE(Compare(reports).has_value());
  reports[0].mutable_record()->mutable_sequence_losses()->add_losses(1);
  EXPECT_FALSE(Compare(reports).has_value()) << "rank 0 alone has them";
  reports[2].set_sequences_crc32c(0xabd);
  const auto difference = Compare(reports);
  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->wrong, std::vector<int>({2}));
  EXPECT_EQ(difference->what,
            "losses of single sequences with the checksum 00000abd where rank "
            "0 has 00000abc");
}

TEST(CompareScalars, OfTwoNobodyKnowsWhoIsWrong) {
  Reports reports = Alike(2);
  reports[1].mutable_record()->set_loss(2);
  const auto difference = Compare(reports);
  ASSERT_TRUE(difference.has_value());
  EXPECT_TRUE(difference->wrong.empty());
  EXPECT_EQ(difference->agreed, 0);
  EXPECT_EQ(difference->others, 1);
  EXPECT_EQ(difference->what, "loss 2 where rank 0 has 2.5");
}

TEST(CompareScalars, MoreThanHalfOfAllDecide) {
  Reports half = Alike(4);
  half[2].mutable_record()->set_loss(2);
  half[3].mutable_record()->set_loss(2);
  EXPECT_TRUE(Compare(half)->wrong.empty());
  // The most of all are not more than half of them.
  half[3].mutable_record()->set_loss(3);
  EXPECT_TRUE(Compare(half)->wrong.empty());
  Reports most = Alike(5);
  most[1].mutable_record()->set_loss(2);
  most[4].mutable_record()->set_loss(3);
  EXPECT_EQ(Compare(most)->wrong, std::vector<int>({1, 4}));
}

// Some have not reported: two are not more than half of four.
TEST(CompareScalars, WhoDidNotReportMayAgreeWithEither) {
  Reports reports = Alike(3);
  reports[1].mutable_record()->set_loss(2);
  EXPECT_EQ(CompareScalars(reports, 3, PlanSums())->wrong,
            std::vector<int>({1}));
  ASSERT_TRUE(CompareScalars(reports, 4, PlanSums()).has_value());
  EXPECT_TRUE(CompareScalars(reports, 4, PlanSums())->wrong.empty());
}

TEST(CompareScalars, NumbersAreTheirBits) {
  Reports reports = Alike(3);
  for (auto& [rank, report] : reports) report.mutable_record()->set_loss(NAN);
  EXPECT_FALSE(Compare(reports).has_value()) << "NaN is NaN";
  reports[2].mutable_record()->set_loss(-NAN);
  EXPECT_EQ(Compare(reports)->wrong, std::vector<int>({2}));
  // A skipped step of fp16.
  for (auto& [rank, report] : reports) {
    report.mutable_record()->set_loss(2);
    report.mutable_record()->set_grad_norm(INFINITY);
  }
  EXPECT_FALSE(Compare(reports).has_value());
  reports[0].mutable_record()->set_loss(0.0);
  reports[1].mutable_record()->set_loss(-0.0);
  reports[2].mutable_record()->set_loss(0.0);
  EXPECT_EQ(Compare(reports)->wrong, std::vector<int>({1}));
}

}  // namespace
}  // namespace troupe
