// Bytes that ranks send where units are cut, counted in whole plans and held to
// the papers' formulas (docs/layouts.md), to the byte.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/plan/find_program.h"
#include "proto/plan/groups.h"
#include "scheduler/planner/planner.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/rates.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

// Tensor, sequence parallel, precision.
using Case = std::tuple<int, bool, std::string>;

class LayoutBytes : public testing::TestWithParam<Case> {
 protected:
  static constexpr int64_t kHidden = 48;
  static constexpr int64_t kTokens = 2 * 8;  // of a micro-batch
  static constexpr int kMicroBatches = 3;

  static JobSpec Job() {
    JobSpec job = ExampleJob({.micro_batches = kMicroBatches});
    job.mutable_model()->set_hidden_size(kHidden);
    job.mutable_model()->set_num_attention_heads(8);
    job.mutable_training()->set_dropout(0.1);
    return job;
  }
};

TEST_P(LayoutBytes, AreThoseOfThePapers) {
  const auto& [tensor, sequence, precision] = GetParam();
  JobSpec job = Job();
  job.mutable_training()->set_precision(precision);
  job.mutable_parallelism()->set_tensor(tensor);
  job.mutable_parallelism()->set_sequence_parallel(sequence);
  const auto plan = CompilePlan(job, ExampleWorkers(tensor));
  ASSERT_TRUE(plan.ok()) << plan.status();

  // What a rank sends, by unit and direction, of all micro-batches.
  std::map<std::pair<int, bool>, int64_t> sent;
  for (const Role& role : plan->roles()) {
    sent.clear();
    for (const Instruction& i :
         FindProgram(role, Program::TRAIN)->instructions()) {
      if (i.kind() != Instruction::EXCHANGE) continue;
      sent[{i.unit(), i.exchange().backward()}] += CollectiveBytesSent(
          {.bytes = CollectiveBytes(*plan, 0, i),
           .ranks = GroupSize(plan->mesh(), plan->groups(i.group())),
           .collective = i.exchange().collective()});
    }
    const int64_t element = precision == "bf16" ? 2 : 4;
    // r S: all but its own share of [tokens, hidden].
    const int64_t r_s =
        kMicroBatches * kTokens * kHidden * element * (tensor - 1) / tensor;
    const int64_t parts = kMicroBatches * (tensor - 1) * 12 * kTokens;
    const int head = plan->units_size() - 1;
    const int64_t once = sequence ? r_s : 2 * r_s;
    const int64_t both = 2 * r_s;  // an all-reduce, or a gather and a scatter
    EXPECT_EQ((sent[{0, false}]), once);
    EXPECT_EQ((sent[{0, true}]), sequence ? r_s : 0);
    for (int u = 1; u < head; ++u) {
      EXPECT_EQ((sent[{u, false}]), 2 * both) << "unit " << u;
      EXPECT_EQ((sent[{u, true}]), 2 * both) << "unit " << u;
    }
    EXPECT_EQ((sent[{head, false}]), (sequence ? r_s : 0) + parts);
    EXPECT_EQ((sent[{head, true}]), once);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, LayoutBytes,
    testing::Combine(testing::Values(2, 4, 8), testing::Bool(),
                     testing::Values("f32", "bf16")),
    [](const auto& info) {
      return absl::StrCat(std::get<2>(info.param), "_", std::get<0>(info.param),
                          std::get<1>(info.param) ? "_sequence" : "");
    });

// Of key-value heads, or 0 for as many as heads; ranks; precision.
using ContextCase = std::tuple<int, int, std::string>;

class UlyssesBytes : public testing::TestWithParam<ContextCase> {};

// DeepSpeed-Ulysses (arXiv 2309.14509), section 3.2: queries, keys, values and
// attention's output, of each of which a rank has T / c tokens and sends all
// but its own block; of key-value heads that it shares as many as there are
// ranks.
TEST_P(UlyssesBytes, AreThoseOfThePaper) {
  const auto& [key_value_heads, context, precision] = GetParam();
  constexpr int64_t kHidden = 48, kHeads = 8, kTokens = 2 * 8;
  constexpr int kMicroBatches = 3;
  JobSpec job = ExampleJob({.micro_batches = kMicroBatches});
  ModelSpec& model = *job.mutable_model();
  if (key_value_heads > 0) {
    model.set_architecture("llama");
    model.set_num_key_value_heads(key_value_heads);
  }
  model.set_hidden_size(kHidden);
  model.set_num_attention_heads(kHeads);
  job.mutable_training()->set_precision(precision);
  job.mutable_parallelism()->set_context(context);
  const auto plan = CompilePlan(job, ExampleWorkers(context));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const int64_t element = precision == "bf16" ? 2 : 4;
  const int64_t key_value_width =
      kHidden / kHeads *
      (key_value_heads > 0 ? std::max(key_value_heads, context) : kHeads);
  const int64_t each = kMicroBatches * kTokens / context * element *
                       (2 * kHidden + 2 * key_value_width) * (context - 1) /
                       context;
  std::map<std::pair<int, bool>, int64_t> sent;
  for (const Instruction& i :
       FindProgram(plan->roles(0), Program::TRAIN)->instructions()) {
    if (i.kind() != Instruction::EXCHANGE) continue;
    EXPECT_EQ(i.exchange().collective(), ALL_TO_ALL);
    sent[{i.unit(), i.exchange().backward()}] += CollectiveBytesSent(
        {.bytes = CollectiveBytes(*plan, 0, i),
         .ranks = GroupSize(plan->mesh(), plan->groups(i.group())),
         .collective = i.exchange().collective()});
  }
  const int blocks = plan->units_size() - 2;
  EXPECT_EQ(static_cast<int>(sent.size()), 2 * blocks);
  for (int u = 1; u <= blocks; ++u) {
    EXPECT_EQ((sent[{u, false}]), each) << "unit " << u;
    EXPECT_EQ((sent[{u, true}]), each) << "unit " << u;
  }
}

std::string ContextName(const testing::TestParamInfo<ContextCase>& info) {
  const auto& [key_value_heads, context, precision] = info.param;
  return absl::StrCat(precision, "_", context, "_of_", key_value_heads);
}

INSTANTIATE_TEST_SUITE_P(All, UlyssesBytes,
                         testing::Combine(testing::Values(0, 2, 8),
                                          testing::Values(2, 4, 8),
                                          testing::Values("f32", "bf16")),
                         ContextName);

// Of squares and cubes of ranks.
constexpr int64_t kHidden = 36, kInner = 72;
constexpr int kLength = 12;
constexpr int kMicroBatches = 3;
JobSpec JobOfBlocks(const std::string& architecture,
                    const std::string& precision, int micro_batch) {
  JobSpec job = ExampleJob(
      {.micro_batches = kMicroBatches, .micro_batch_size = micro_batch});
  ModelSpec& model = *job.mutable_model();
  model.set_architecture(architecture);
  model.set_hidden_size(kHidden);
  model.set_num_attention_heads(6);
  model.set_intermediate_size(kInner);
  model.set_max_position_embeddings(kLength);
  job.mutable_training()->set_sequence_length(kLength);
  job.mutable_training()->set_precision(precision);
  return job;
}

class Tensor3DBytes
    : public testing::TestWithParam<std::tuple<std::string, int, std::string>> {
};

// 3D tensor parallelism (arXiv 2105.14450), section 3.1: of C = A B, [M, N] by
// [N, K], a rank gathers M N / q^3 from the q - 1 others along one axis and
// scatters sums of M K along another; backward the same the other way. Weights
// are gathered along the third, forward and backward, and their gradients
// scattered. The row sums of norms, of M / q^2 rows, are summed along the axis
// of the hidden columns.
TEST_P(Tensor3DBytes, AreThoseOfThePaper) {
  const auto& [architecture, side, precision] = GetParam();
  const int64_t tokens = kLength * side * side;
  JobSpec job = JobOfBlocks(architecture, precision, side * side);
  const int cube = side * side * side;
  job.mutable_parallelism()->set_tensor(cube);
  job.mutable_parallelism()->set_tensor_method("3d");
  const auto plan = CompilePlan(job, ExampleWorkers(cube));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const int64_t element = precision == "bf16" ? 2 : 4;
  // Columns in and out of the four products: queries, keys and values are one,
  // and so are gate and up.
  const int64_t first = architecture == "llama" ? 2 * kInner : kInner;
  const int64_t columns = (kHidden + 3 * kHidden) + (kHidden + kHidden) +
                          (kHidden + first) + (kInner + kHidden);
  const int64_t products =
      (side - 1) * tokens * columns * element / cube * kMicroBatches;
  constexpr int64_t kRowSumsBytes = 2 * 8;
  const int64_t norms = 2 * 2 * (side - 1) * kRowSumsBytes * tokens /
                        (side * side) / side * kMicroBatches;
  const int64_t flat = plan->units(1).flat_elements();
  std::map<std::tuple<int, Instruction::Kind, bool>, int64_t> sent;
  for (const Instruction& i :
       FindProgram(plan->roles(0), Program::TRAIN)->instructions()) {
    const int64_t bytes = CollectiveBytes(*plan, 0, i);
    if (bytes == 0) continue;
    sent[{i.unit(), i.kind(), i.exchange().backward()}] += CollectiveBytesSent(
        {.bytes = bytes,
         .ranks = GroupSize(plan->mesh(), plan->groups(i.group())),
         .collective = CollectiveOf(i)});
  }
  // All of a block is weights but for biases and norms.
  const int64_t weights = kHidden * 3 * kHidden + kHidden * kHidden +
                          kHidden * first + kInner * kHidden;
  EXPECT_GE(flat, weights / (side * side));
  EXPECT_LE(flat, weights / (side * side) + 8 * (kInner + 32));
  const int64_t gathered = flat * element * (side - 1) / side * kMicroBatches;
  for (int u = 1; u + 1 < plan->units_size(); ++u) {
    EXPECT_EQ((sent[{u, Instruction::EXCHANGE, false}]), products + norms);
    EXPECT_EQ((sent[{u, Instruction::EXCHANGE, true}]), products + norms);
    EXPECT_EQ((sent[{u, Instruction::GATHER_PARAMETERS, false}]), 2 * gathered);
    EXPECT_EQ((sent[{u, Instruction::SCATTER_GRADS, false}]),
              flat * 4 * (side - 1) / side * kMicroBatches);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Tensor3DBytes,
                         testing::Combine(testing::Values("gpt2", "llama"),
                                          testing::Values(2, 3),
                                          testing::Values("f32", "bf16")),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param), "_",
                                               std::get<1>(info.param), "_",
                                               std::get<2>(info.param));
                         });

class PanelBytes : public testing::TestWithParam<
                       std::tuple<std::string, int, int, std::string>> {};

// Optimus (arXiv 2104.05343), sections 3.1 and 3.2, and Tesseract (2105.14500):
// of C = A B, [M, N] by [N, K] on q x q ranks, forward each of q panels of A
// and of B goes from its rank to the q - 1 others; backward it does so once
// more, and a summand of its gradient goes back. The papers count a broadcast
// as log q of its bytes, along a tree; here each byte is counted as often as
// somebody receives it. A reduction is a reduce-scatter and a gather to the
// root, which is 1 / q of its bytes more. In d layers a rank has M / d.
TEST_P(PanelBytes, AreThoseOfThePaper) {
  const auto& [architecture, side, depth, precision] = GetParam();
  JobSpec job = JobOfBlocks(architecture, precision, side * depth);
  const int ranks = side * side * depth;
  job.mutable_parallelism()->set_tensor(ranks);
  job.mutable_parallelism()->set_tensor_method(depth == 1 ? "2d" : "2.5d");
  if (depth > 1) job.mutable_parallelism()->set_tensor_depth(depth);
  const auto plan = CompilePlan(job, ExampleWorkers(ranks));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const int64_t element = precision == "bf16" ? 2 : 4;
  const int64_t rows = kLength * side;  // of a layer
  const int64_t first = architecture == "llama" ? 2 * kInner : kInner;
  // Rows and columns of the four weights: queries, keys and values are one, and
  // so are gate and up.
  const std::pair<int64_t, int64_t> weights[] = {{kHidden, 3 * kHidden},
                                                 {kHidden, kHidden},
                                                 {kHidden, first},
                                                 {kInner, kHidden}};
  int64_t panels = 0;  // of A and B
  int64_t of_weights = 0;
  for (const auto& [in, out] : weights) {
    panels += rows * in + in * out;
    of_weights += in * out;
  }
  const int64_t sent =
      (side - 1) * panels * element / (side * side) * kMicroBatches;
  // Two norms, of rows / q, summed over q.
  constexpr int64_t kRowSumsBytes = 2 * 8;
  const int64_t norms =
      2 * 2 * (side - 1) * kRowSumsBytes * rows / side / side * kMicroBatches;
  std::map<std::pair<int, bool>, int64_t> counted;
  for (const Instruction& i :
       FindProgram(plan->roles(0), Program::TRAIN)->instructions()) {
    if (i.kind() != Instruction::EXCHANGE) continue;
    counted[{i.unit(), i.exchange().backward()}] += CollectiveBytesSent(
        {.bytes = CollectiveBytes(*plan, 0, i),
         .ranks = GroupSize(plan->mesh(), plan->groups(i.group())),
         .collective = i.exchange().collective()});
  }
  for (int u = 1; u + 1 < plan->units_size(); ++u) {
    EXPECT_EQ((counted[{u, false}]), sent + norms) << "unit " << u;
    EXPECT_EQ((counted[{u, true}]), sent + sent * (side + 1) / side + norms)
        << "unit " << u;
  }
  // Weights are in blocks, biases and norms in columns.
  const int64_t flat = plan->units(1).flat_elements();
  EXPECT_GE(flat, of_weights / (side * side));
  EXPECT_LE(flat, of_weights / (side * side) + 8 * (kInner + 32));
}

// What a block keeps of a token for backward, all ranks together, is the same
// on any square: each has a piece of everything, but for the statistics of
// rows, of which each column has its own.
TEST(PanelMemory, OfKeptActivationsEachHasAPiece) {
  const auto kept = [](int side, int depth) {
    JobSpec job = JobOfBlocks("gpt2", "f32", side * depth);
    job.mutable_parallelism()->set_tensor(side * side * depth);
    job.mutable_parallelism()->set_tensor_method(depth == 1 ? "2d" : "2.5d");
    const auto plan = CompilePlan(job, ExampleWorkers(side * side * depth));
    CHECK_OK(plan.status());
    const int64_t ranks = side * side * depth;
    const int64_t tokens = kLength * side * depth;
    // Mean and deviation of two norms, f32.
    const int64_t statistics = 2 * 2 * 4 * side;
    return static_cast<double>(plan->units(1).stash_bytes() * ranks) /
               static_cast<double>(tokens) -
           static_cast<double>(statistics);
  };
  // Normed rows twice, queries, keys, values, what attention makes and its
  // logsumexp, the sum behind it, and what goes into GELU and comes out.
  const double whole = (2 + 3 + 1 + 1) * kHidden * 4 + 6 * 4 + 2 * kInner * 4;
  for (const auto& [side, depth] : {std::pair(2, 1), {3, 1}, {2, 2}, {3, 2}}) {
    EXPECT_NEAR(kept(side, depth), whole, 0.07 * whole)
        << side << " x " << side << " x " << depth;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, PanelBytes,
    testing::Combine(testing::Values("gpt2", "llama"), testing::Values(2, 3),
                     testing::Values(1, 2), testing::Values("f32", "bf16")),
    [](const auto& info) {
      return absl::StrCat(std::get<0>(info.param), "_", std::get<1>(info.param),
                          "x", std::get<2>(info.param), "_",
                          std::get<3>(info.param));
    });

class RingBytes : public testing::TestWithParam<
                      std::tuple<std::string, int, int, std::string>> {};

// Ring Attention (arXiv 2310.01889): at each hop a rank sends the keys and
// values that it has to the next one; c - 1 hops bring it those of all.
// Backward they come back, and their gradients with them. Ring self-attention
// (arXiv 2105.13120) sends the same, keys before values.
TEST_P(RingBytes, AreThoseOfTheHops) {
  const auto& [method, key_value_heads, context, precision] = GetParam();
  constexpr int64_t kHidden = 48, kHeads = 8, kTokens = 2 * 16;
  constexpr int kMicroBatches = 3;
  JobSpec job = ExampleJob({.micro_batches = kMicroBatches});
  ModelSpec& model = *job.mutable_model();
  if (key_value_heads > 0) {
    model.set_architecture("llama");
    model.set_num_key_value_heads(key_value_heads);
  }
  model.set_hidden_size(kHidden);
  model.set_num_attention_heads(kHeads);
  model.set_max_position_embeddings(16);
  job.mutable_training()->set_sequence_length(16);
  job.mutable_training()->set_precision(precision);
  job.mutable_parallelism()->set_context(context);
  job.mutable_parallelism()->set_context_method(method);
  const auto plan = CompilePlan(job, ExampleWorkers(context));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const int64_t element = precision == "bf16" ? 2 : 4;
  const int64_t key_value_width =
      kHidden / kHeads * (key_value_heads > 0 ? key_value_heads : kHeads);
  const int64_t hop =
      kTokens / context * 2 * key_value_width * element * kMicroBatches;
  std::map<std::pair<int, bool>, int64_t> sent;
  for (const Instruction& i :
       FindProgram(plan->roles(0), Program::TRAIN)->instructions()) {
    if (i.kind() != Instruction::EXCHANGE) continue;
    EXPECT_EQ(i.exchange().collective(), SHIFT);
    sent[{i.unit(), i.exchange().backward()}] += CollectiveBytesSent(
        {.bytes = CollectiveBytes(*plan, 0, i),
         .ranks = GroupSize(plan->mesh(), plan->groups(i.group())),
         .collective = i.exchange().collective()});
  }
  const int blocks = plan->units_size() - 2;
  EXPECT_EQ(static_cast<int>(sent.size()), 2 * blocks);
  for (int u = 1; u <= blocks; ++u) {
    EXPECT_EQ((sent[{u, false}]), (context - 1) * hop) << "unit " << u;
    EXPECT_EQ((sent[{u, true}]), 2 * (context - 1) * hop) << "unit " << u;
  }
}

std::string RingName(const testing::TestParamInfo<
                     std::tuple<std::string, int, int, std::string>>& info) {
  const auto& [method, key_value_heads, context, precision] = info.param;
  return absl::StrCat(method, "_", precision, "_", context, "_of_",
                      key_value_heads);
}

INSTANTIATE_TEST_SUITE_P(
    All, RingBytes,
    testing::Combine(testing::Values("ring", "ring_self_attention"),
                     testing::Values(0, 2, 8), testing::Values(2, 4, 8),
                     testing::Values("f32", "bf16")),
    RingName);

// The same attention on every rank, at every hop: but for the diagonal, which
// all have of their own keys.
TEST(RingWork, IsTheSameAtEveryHop) {
  JobSpec job = ExampleJob({});
  job.mutable_parallelism()->set_context(4);
  job.mutable_parallelism()->set_context_method("ring");
  const auto plan = CompilePlan(job, ExampleWorkers(4));
  ASSERT_TRUE(plan.ok()) << plan.status();
  job.mutable_parallelism()->clear_context_method();
  job.mutable_parallelism()->set_context(1);
  const auto whole = CompilePlan(job, ExampleWorkers(1));
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (int u = 1; u + 1 < plan->units_size(); ++u) {
    EXPECT_EQ(4 * plan->units(u).forward().attention_flops(),
              whole->units(u).forward().attention_flops());
    EXPECT_EQ(4 * plan->units(u).backward_input().attention_flops(),
              whole->units(u).backward_input().attention_flops());
  }
}

// Of a Llama with sequences of `length`, cut over `context` ranks, each of
// which has `budget` bytes.
absl::StatusOr<Plan> PlanOfLength(const std::string& method, int length,
                                  int context, int64_t budget) {
  JobSpec job = ExampleJob({.micro_batch_size = 1});
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("llama");
  model.set_hidden_size(64);
  model.set_num_attention_heads(8);
  model.set_max_position_embeddings(length);
  job.mutable_training()->set_sequence_length(length);
  job.mutable_parallelism()->set_context(context);
  if (context > 1) job.mutable_parallelism()->set_context_method(method);
  std::vector<WorkerDescription> workers = ExampleWorkers(context);
  for (WorkerDescription& worker : workers) {
    worker.mutable_budgets(0)->set_bytes(budget);
  }
  return CompilePlan(job, workers);
}

class ContextMemory : public testing::TestWithParam<std::string> {};

// The memory of a rank stays as it is where ranks and length grow together,
// so that eight ranks train what is eight times too long for one.
TEST_P(ContextMemory, StaysFlatAsRanksAndLengthGrow) {
  constexpr int kLength = 512;
  const auto one = PlanOfLength(GetParam(), kLength, 1, int64_t{1} << 30);
  ASSERT_TRUE(one.ok()) << one.status();
  // Attention's operands in two layouts, or two ranks' keys.
  const auto budget = static_cast<int64_t>(
      1.25 * static_cast<double>(one->prediction().ranks(0).peak_bytes()));
  int64_t two = 0;
  for (const int ranks : {2, 4, 8}) {
    const auto plan = PlanOfLength(GetParam(), ranks * kLength, ranks, budget);
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (const RankPrediction& rank : plan->prediction().ranks()) {
      if (two == 0) two = rank.peak_bytes();
      EXPECT_NEAR(
          static_cast<double>(rank.peak_bytes()) / static_cast<double>(two), 1,
          0.04)  // of two, there is one hop, and nothing else on its way
          << ranks << " ranks";
    }
  }
  for (const int ranks : {1, 2, 4}) {
    EXPECT_EQ(
        PlanOfLength(GetParam(), 8 * kLength, ranks, budget).status().code(),
        absl::StatusCode::kInvalidArgument)
        << ranks << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(All, ContextMemory, testing::Values("ulysses", "ring"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace troupe
