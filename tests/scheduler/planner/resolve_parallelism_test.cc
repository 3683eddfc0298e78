#include "scheduler/planner/resolve_parallelism.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ResolveParallelism, FillsInDefaults) {
  ParallelismSpec parallelism;
  ASSERT_TRUE(ResolveParallelism({}, parallelism).ok());
  EXPECT_EQ(parallelism.data(), 1);
  EXPECT_EQ(parallelism.pipeline(), 1);
  EXPECT_EQ(parallelism.pipeline_schedule(), "1f1b");
  EXPECT_EQ(parallelism.virtual_stages(), 1);
  EXPECT_FALSE(parallelism.vertical_sync());
  EXPECT_EQ(parallelism.context(), 1);
  EXPECT_FALSE(parallelism.has_context_method());
}

// What `memory: auto` may choose stays open, unless something is said of it.
TEST(ResolveParallelism, LeavesZeroToMemoryAuto) {
  MemorySpec memory;
  memory.set_mode("auto");
  ParallelismSpec open;
  ASSERT_TRUE(ResolveParallelism(memory, open).ok());
  EXPECT_FALSE(open.has_zero());
  ParallelismSpec given;
  given.set_zero(0);
  ASSERT_TRUE(ResolveParallelism(memory, given).ok());
  EXPECT_TRUE(given.has_zero());
  EXPECT_EQ(given.zero_size(), 1);
  ParallelismSpec of_use;
  of_use.set_reshard_after_forward(false);
  ASSERT_TRUE(ResolveParallelism(memory, of_use).ok());
  EXPECT_TRUE(of_use.has_zero());
  ParallelismSpec size;
  size.set_data(2);
  size.set_zero_size(2);
  EXPECT_THAT(std::string(ResolveParallelism(memory, size).message()),
              StartsWith("parallelism.zero_size: "));
}

TEST(ResolveParallelism, SequencesAreCutAsUlyssesDoes) {
  ParallelismSpec parallelism;
  parallelism.set_context(4);
  ASSERT_TRUE(ResolveParallelism({}, parallelism).ok());
  EXPECT_EQ(parallelism.context_method(), "ulysses");
}

// As many as the schedule needs.
TEST(ResolveParallelism, VirtualStagesFollowTheSchedule) {
  ParallelismSpec parallelism;
  parallelism.set_pipeline(2);
  parallelism.set_pipeline_schedule("interleaved_1f1b");
  ASSERT_TRUE(ResolveParallelism({}, parallelism).ok());
  EXPECT_EQ(parallelism.virtual_stages(), 2);
}

// Ranks that share experts are some of data's.
TEST(ResolveParallelism, ExpertsAreSharedByRanksOfData) {
  ParallelismSpec parallelism;
  parallelism.set_data(6);
  parallelism.set_expert(3);
  parallelism.set_zero(1);
  ASSERT_TRUE(ResolveParallelism({}, parallelism).ok());
  EXPECT_EQ(parallelism.expert_slack(), 2);
  EXPECT_EQ(parallelism.zero_size(), 6);
  const auto message = [](int data, int expert, double slack) {
    ParallelismSpec of;
    of.set_data(data);
    of.set_expert(expert);
    if (slack > 0) of.set_expert_slack(slack);
    return std::string(ResolveParallelism({}, of).message());
  };
  EXPECT_THAT(message(6, 4, 0),
              AllOf(StartsWith("parallelism.expert: 4 does not divide the 6 "
                               "ranks of parallelism.data"),
                    HasSubstr("use 1, 2, 3 or 6")));
  EXPECT_THAT(message(6, 0, 0), StartsWith("parallelism.expert: "));
  EXPECT_THAT(message(6, 1, 1),
              StartsWith("parallelism.expert_slack: says how the ranks of "
                         "parallelism.expert share a unit, which is 1"));
  EXPECT_EQ(message(6, 2, 1.5), "");
  EXPECT_THAT(message(6, 2, 0.5), StartsWith("parallelism.expert_slack: 0.5"));
  EXPECT_THAT(message(6, 2, 2.5), StartsWith("parallelism.expert_slack: 2.5"));
}

// Where ranks of data do not suffice.
TEST(ResolveParallelism, ExpertsAreSharedByRanksThatCutTokens) {
  const auto message = [](const std::string& text) {
    ParallelismSpec of;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &of));
    return std::string(ResolveParallelism({}, of).message());
  };
  const std::string sequence = "tensor: 2 sequence_parallel: true ";
  EXPECT_EQ(message("data: 1 expert: 2 " + sequence), "");
  EXPECT_EQ(message("data: 2 expert: 4 " + sequence), "");
  EXPECT_EQ(message("data: 2 expert: 2 expert_tensor: 1 " + sequence), "");
  EXPECT_EQ(message("data: 2 expert: 2 expert_tensor: 2 " + sequence), "");
  EXPECT_EQ(message("data: 1 context: 2 expert: 2"), "");
  EXPECT_THAT(message("data: 2 expert: 4 tensor: 2"),
              StartsWith("parallelism.expert: 4 does not divide the 2 ranks "
                         "of parallelism.data"))
      << "without sequence_parallel they have the same tokens";
  EXPECT_THAT(message("data: 3 context: 2 expert: 8 " + sequence),
              StartsWith("parallelism.expert: 8 ranks cannot be made of some "
                         "of the 3 of parallelism.data that divide these, all "
                         "2 of parallelism.context, all 2 of "
                         "parallelism.tensor; use 2, 3, 4, 6, 12 or 1"));
  EXPECT_THAT(message("data: 2 expert: 2 expert_tensor: 1 tensor: 2"),
              StartsWith("parallelism.expert_tensor: 1 gives each rank"));
  EXPECT_THAT(message("data: 2 expert: 2 expert_tensor: 3 " + sequence),
              StartsWith("parallelism.expert_tensor: 3 of the 2 ranks"));
  EXPECT_THAT(message("data: 2 expert: 4 expert_tensor: 2 " + sequence),
              StartsWith("parallelism.expert: 4 does not divide"));
  EXPECT_THAT(message("data: 2 expert: 4 " + sequence +
                      "strategies { units: 'head' tensor: 2 }"),
              StartsWith("parallelism.strategies: do not go with "
                         "parallelism.expert: 4"));
}

TEST(ResolveParallelism, SlicesAreDealtOverSequencesRanksFirst) {
  const auto message = [](int zero_size) {
    ParallelismSpec parallelism;
    parallelism.set_data(6);
    parallelism.set_context(4);
    parallelism.set_zero(3);
    if (zero_size > 0) parallelism.set_zero_size(zero_size);
    const absl::Status status = ResolveParallelism({}, parallelism);
    return status.ok() ? absl::StrCat(parallelism.zero_size())
                       : std::string(status.message());
  };
  EXPECT_EQ(message(0), "24");
  for (const int fits : {1, 2, 4, 8, 12, 24}) {
    EXPECT_EQ(message(fits), absl::StrCat(fits));
  }
  EXPECT_THAT(message(3), HasSubstr("3 does not divide the 4 ranks of "
                                    "parallelism.context; use 2 or 4"));
  EXPECT_THAT(message(6), HasSubstr("6 is no multiple of the 4 ranks of "
                                    "parallelism.context; use 4 or 8"));
  EXPECT_THAT(message(16), HasSubstr("16 are 4 times the ranks of "
                                     "parallelism.context, which does not "
                                     "divide the 6 replicas of "
                                     "parallelism.data; use 12 or 24"));
  EXPECT_THAT(message(25), HasSubstr("is out of range"));
}

std::string MessageOf(const ParallelismSpec& of,
                      const MemorySpec& memory = {}) {
  ParallelismSpec parallelism = of;
  return std::string(ResolveParallelism(memory, parallelism).message());
}

ParallelismSpec Cube(int tensor) {
  ParallelismSpec parallelism;
  parallelism.set_tensor(tensor);
  parallelism.set_tensor_method("3d");
  return parallelism;
}

TEST(ResolveParallelism, ThreeDimensionsTakeCubes) {
  for (const int cube : {8, 27, 64, 125, 216, 343, 512, 729, 1000}) {
    EXPECT_EQ(MessageOf(Cube(cube)), "");
  }
  const std::string no_cube =
      " ranks are no cube, which tensor_method: 3d needs: as many along each "
      "of three axes; use ";
  EXPECT_EQ(MessageOf(Cube(2)),
            absl::StrCat("parallelism.tensor: 2", no_cube, "8 or 27"));
  EXPECT_EQ(MessageOf(Cube(9)),
            absl::StrCat("parallelism.tensor: 9", no_cube, "8 or 27"));
  EXPECT_EQ(MessageOf(Cube(63)),
            absl::StrCat("parallelism.tensor: 63", no_cube, "27 or 64"));
  // 1331 are more than there may be.
  EXPECT_EQ(MessageOf(Cube(1001)),
            absl::StrCat("parallelism.tensor: 1001", no_cube, "1000"));
  const std::string of_one =
      "parallelism.tensor_method: says how the ranks of parallelism.tensor "
      "share a unit, which is 1; use ";
  EXPECT_EQ(MessageOf(Cube(1)),
            absl::StrCat(of_one, "8, 27 or 64, or leave it out"));
  ParallelismSpec one;
  one.set_tensor_method("1d");
  EXPECT_EQ(MessageOf(one), absl::StrCat(of_one, "2 or more, or leave it out"));
  ParallelismSpec other = Cube(8);
  other.set_tensor_method("4d");
  EXPECT_THAT(MessageOf(other),
              StartsWith("parallelism.tensor_method: there is no \"4d\"; use "
                         "1d, 2d, 2.5d or 3d"));
}

ParallelismSpec Blocks(const char* method, int tensor, int depth = 0) {
  ParallelismSpec parallelism;
  parallelism.set_tensor(tensor);
  parallelism.set_tensor_method(method);
  if (depth > 0) parallelism.set_tensor_depth(depth);
  return parallelism;
}

TEST(ResolveParallelism, TwoDimensionsTakeSquares) {
  for (const int square : {4, 9, 16, 25, 1024}) {
    EXPECT_EQ(MessageOf(Blocks("2d", square)), "");
  }
  const std::string no_square =
      " ranks are no square, which tensor_method: 2d needs: as many along each "
      "of two axes; use ";
  EXPECT_EQ(MessageOf(Blocks("2d", 2)),
            absl::StrCat("parallelism.tensor: 2", no_square, "4 or 9"));
  EXPECT_EQ(MessageOf(Blocks("2d", 8)),
            absl::StrCat("parallelism.tensor: 8", no_square, "4 or 9"));
  EXPECT_THAT(MessageOf(Blocks("2d", 1)),
              HasSubstr("which is 1; use 4, 9 or 16, or leave it out"));
  ParallelismSpec sequence = Blocks("2d", 4);
  sequence.set_sequence_parallel(true);
  EXPECT_EQ(MessageOf(sequence),
            "parallelism.sequence_parallel: is for parallelism.tensor_method: "
            "1d; leave it out");
  EXPECT_EQ(MessageOf(Blocks("2d", 4, 2)),
            "parallelism.tensor_depth: is for parallelism.tensor_method: 2.5d; "
            "leave it out");
  for (const int zero : {1, 2, 3}) {
    ParallelismSpec dealt = Blocks("2d", 4);
    dealt.set_data(2);
    dealt.set_zero(zero);
    EXPECT_EQ(MessageOf(dealt), "");
  }
}

TEST(ResolveParallelism, LayersAreSquares) {
  for (const auto& [tensor, depth] :
       {std::pair(8, 2), {12, 3}, {18, 2}, {27, 3}, {32, 2}, {64, 4}}) {
    ParallelismSpec layers = Blocks("2.5d", tensor);
    EXPECT_EQ(ResolveParallelism({}, layers), absl::OkStatus());
    EXPECT_EQ(layers.tensor_depth(), depth) << tensor;
  }
  EXPECT_EQ(MessageOf(Blocks("2.5d", 32, 8)), "");
  EXPECT_EQ(MessageOf(Blocks("2.5d", 32, 4)),
            "parallelism.tensor_depth: 4 layers of the 32 ranks of "
            "parallelism.tensor are no squares of 4 or more; use 2 or 8");
  EXPECT_EQ(MessageOf(Blocks("2.5d", 16, 1)),
            "parallelism.tensor_depth: one layer is parallelism.tensor_method: "
            "2d; use that, and leave this out");
  const std::string no_layers =
      " ranks are no layers of as many rows as columns, two or more, which "
      "tensor_method: 2.5d needs; use ";
  EXPECT_EQ(MessageOf(Blocks("2.5d", 4)),
            absl::StrCat("parallelism.tensor: 4", no_layers, "8 or 12"));
  EXPECT_EQ(MessageOf(Blocks("2.5d", 10)),
            absl::StrCat("parallelism.tensor: 10", no_layers, "8 or 12"));
}

TEST(ResolveParallelism, ThreeDimensionsLeaveNothingToSequencesAndZero) {
  ParallelismSpec sequence = Cube(8);
  sequence.set_sequence_parallel(true);
  EXPECT_THAT(MessageOf(sequence),
              AllOf(StartsWith("parallelism.sequence_parallel: "),
                    HasSubstr("leave it out")));
  for (const int zero : {0, 1, 2, 3}) {
    ParallelismSpec dealt = Cube(8);
    dealt.set_data(2);
    dealt.set_zero(zero);
    const bool may = zero == 0 || zero == 3;
    EXPECT_THAT(MessageOf(dealt),
                may ? StartsWith("")
                    : StartsWith(absl::StrCat("parallelism.zero: ", zero,
                                              " does not go with")));
    EXPECT_EQ(MessageOf(dealt).empty(), may);
  }
  ParallelismSpec size = Cube(8);
  size.set_data(2);
  size.set_zero_size(2);
  EXPECT_EQ(MessageOf(size),
            "parallelism.zero_size: nothing is dealt over ranks with zero: 0; "
            "leave it out, or set parallelism.zero to 3");
  size.set_zero(3);
  EXPECT_EQ(MessageOf(size), "");
}

// Also where `memory: auto` may choose ZeRO: weights rest in slices without.
TEST(ResolveParallelism, ThreeDimensionsHaveNoWeightsOfSeveralAges) {
  MemorySpec open;
  open.set_mode("auto");
  for (const char* const schedule : {"pipedream", "pipedream_2bw"}) {
    ParallelismSpec asynchronous = Cube(8);
    asynchronous.set_pipeline(2);
    asynchronous.set_pipeline_schedule(schedule);
    for (const MemorySpec& memory : {MemorySpec(), open}) {
      EXPECT_THAT(
          MessageOf(asynchronous, memory),
          AllOf(StartsWith(absl::StrCat("parallelism.tensor_method: 3d does "
                                        "not go with ",
                                        schedule)),
                HasSubstr("use a synchronous schedule such as 1f1b, or "
                          "tensor_method: 1d")));
      ParallelismSpec in_one = asynchronous;
      in_one.set_tensor_method("1d");
      EXPECT_EQ(MessageOf(in_one, memory), "");
    }
  }
}

TEST(ResolveParallelism, Refuses) {
  const auto message = [](void (*change)(ParallelismSpec&)) {
    ParallelismSpec parallelism;
    change(parallelism);
    return std::string(ResolveParallelism({}, parallelism).message());
  };
  EXPECT_THAT(message([](ParallelismSpec& p) { p.set_pipeline(0); }),
              StartsWith("parallelism.pipeline: 0 is out of range"));
  EXPECT_THAT(message([](ParallelismSpec& p) { p.set_data(-1); }),
              StartsWith("parallelism.data: -1 is out of range"));
  EXPECT_THAT(
      message([](ParallelismSpec& p) { p.set_pipeline_schedule("1F1B"); }),
      AllOf(StartsWith("parallelism.pipeline_schedule: there is no \"1F1B\""),
            HasSubstr("1f1b")));
  EXPECT_THAT(message([](ParallelismSpec& p) { p.set_virtual_stages(0); }),
              StartsWith("parallelism.virtual_stages: 0 is out of range"));
  EXPECT_THAT(message([](ParallelismSpec& p) { p.set_context(0); }),
              StartsWith("parallelism.context: 0 is out of range"));
  EXPECT_THAT(
      message([](ParallelismSpec& p) { p.set_context_method("ulysses"); }),
      StartsWith("parallelism.context_method: says how the ranks of "
                 "parallelism.context share a unit, which is 1"));
  EXPECT_THAT(message([](ParallelismSpec& p) {
                p.set_context(2);
                p.set_context_method("rings");
              }),
              AllOf(StartsWith("parallelism.context_method: there is no "
                               "\"rings\""),
                    HasSubstr("ulysses")));
  EXPECT_THAT(message([](ParallelismSpec& p) { p.set_tensor_method("3d"); }),
              StartsWith("parallelism.tensor_method: says how the ranks of "
                         "parallelism.tensor share a unit, which is 1; use 8"));
  EXPECT_THAT(message([](ParallelismSpec& p) {
                p.set_tensor(12);
                p.set_tensor_method("3d");
              }),
              AllOf(StartsWith("parallelism.tensor: 12 ranks are no cube"),
                    HasSubstr("use 8 or 27")));
  EXPECT_THAT(message([](ParallelismSpec& p) {
                p.set_tensor(4);
                p.set_tensor_method("3d");
              }),
              HasSubstr("use 8 or 27"));
  EXPECT_THAT(message([](ParallelismSpec& p) {
                p.set_tensor(8);
                p.set_tensor_method("3d");
                p.set_sequence_parallel(true);
              }),
              StartsWith("parallelism.sequence_parallel: is for "
                         "parallelism.tensor_method: 1d"));
  for (const int zero : {1, 2}) {
    ParallelismSpec parallelism;
    parallelism.set_tensor(8);
    parallelism.set_tensor_method("3d");
    parallelism.set_data(2);
    parallelism.set_zero(zero);
    EXPECT_THAT(
        std::string(ResolveParallelism({}, parallelism).message()),
        AllOf(StartsWith("parallelism.zero: "), HasSubstr("use 0, or 3")));
    parallelism.set_zero(3);
    EXPECT_TRUE(ResolveParallelism({}, parallelism).ok());
  }
  EXPECT_THAT(message([](ParallelismSpec& p) {
                p.set_tensor(8);
                p.set_tensor_method("3d");
                p.set_pipeline(2);
                p.set_pipeline_schedule("pipedream");
              }),
              AllOf(StartsWith("parallelism.tensor_method: 3d does not go "
                               "with pipedream"),
                    HasSubstr("tensor_method: 1d")));
  EXPECT_THAT(message([](ParallelismSpec& p) { p.set_vertical_sync(true); }),
              StartsWith("parallelism.vertical_sync: is for pipedream, not "
                         "1f1b; leave it out"));
}

}  // namespace
}  // namespace troupe
