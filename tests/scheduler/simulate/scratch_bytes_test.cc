#include "scheduler/simulate/scratch_bytes.h"

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ops/attention.h"
#include "ops/cpu/cpu_device.h"
#include "ops/cpu/device.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "proto/plan/tensor_spec.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

constexpr int64_t kSequences = 4, kLength = 256, kWidth = 256, kHeads = 4;
constexpr int64_t kRows = kSequences * kLength, kVocabulary = 4096;

Plan SomePlan(const std::string& precision, int64_t length = kLength) {
  JobSpec job = ExampleJob({.micro_batch_size = kSequences});
  job.mutable_model()->set_hidden_size(kWidth);
  job.mutable_model()->set_num_attention_heads(kHeads);
  job.mutable_model()->set_vocab_size(kVocabulary);
  job.mutable_model()->set_max_position_embeddings(length);
  job.mutable_training()->set_sequence_length(length);
  job.mutable_training()->set_precision(precision);
  return ExamplePlan(job);
}

// The kernels that take most, at the sizes of that plan.
class Kernels {
 public:
  Kernels(int threads, DType dtype)
      : device_(NewCpuDevice({.threads = threads})), dtype_(dtype) {
    qkv_ = New({kSequences, kLength, 3 * kWidth});
    d_qkv_ = New({kSequences, kLength, 3 * kWidth});
    o_ = New({kSequences, kLength, kWidth});
    logsumexp_ = New({kSequences, kHeads, kLength}, DType::kF32);
    hidden_ = New({kRows, 4 * kWidth});
    weight_ = New({kWidth, 4 * kWidth});
    gradient_ = New({kWidth, 4 * kWidth}, DType::kF32);
    table_ = New({kVocabulary, kWidth});
    logits_ = New({kRows, kVocabulary});
  }
  ~Kernels() {
    for (void* memory : memory_) device_->Free(memory);
  }

  bool bf16_instructions() {
    return CpuDevice::From(*device_).has_bf16_products();
  }
  int64_t pool_bytes() {
    return static_cast<int64_t>(CpuDevice::From(*device_).scratch().bytes());
  }

  void Run() {
    const Tensor x = o_.View({kRows, kWidth});
    AttentionBackward(*device_, {.q = Part(qkv_, 0),
                                 .k = Part(qkv_, 1),
                                 .v = Part(qkv_, 2),
                                 .o = o_,
                                 .logsumexp = logsumexp_,
                                 .d_o = o_,
                                 .dq = Part(d_qkv_, 0),
                                 .dk = Part(d_qkv_, 1),
                                 .dv = Part(d_qkv_, 2),
                                 .heads = kHeads,
                                 .kv_heads = kHeads,
                                 .scale = 0.125f});
    MatMul(*device_, {.a = x, .b = weight_, .c = hidden_});
    MatMul(*device_, {.a = x,
                      .b = hidden_,
                      .c = gradient_,
                      .transpose_a = true,
                      .accumulate = true});
    MatMul(*device_, {.a = x, .b = table_, .c = logits_, .transpose_b = true});
  }

 private:
  Tensor New(std::initializer_list<int64_t> dims) { return New(dims, dtype_); }
  Tensor New(std::initializer_list<int64_t> dims, DType dtype) {
    int64_t bytes = DTypeBytes(dtype);
    for (const int64_t dim : dims) bytes *= dim;
    memory_.push_back(*device_->Allocate(bytes));
    const Tensor tensor(memory_.back(), dtype, dims);
    Fill(*device_, {.x = tensor, .value = 0.01f});
    return tensor;
  }
  static Tensor Part(const Tensor& x, int index) {
    return x.Slice(2, index * kWidth, (index + 1) * kWidth);
  }

  const std::unique_ptr<Device> device_;
  const DType dtype_;
  std::vector<void*> memory_;
  Tensor qkv_, d_qkv_, o_, logsumexp_, hidden_, weight_, gradient_, table_,
      logits_;
};

TEST(ScratchBytes, AttentionsAreWhatThePoolHolds) {
  const Plan plan = SomePlan("f32");
  for (const int threads : {1, 2}) {
    Kernels kernels(threads, DType::kF32);
    for (int step = 0; step < 3; ++step) kernels.Run();
    const ScratchBytes predicted = ScratchBytesOf(plan, {.threads = threads});
    EXPECT_LE(kernels.pool_bytes(), predicted.attention) << threads;
    // One thread may have done the work of two.
    EXPECT_GE(kernels.pool_bytes() * threads, predicted.attention * 9 / 10)
        << threads;
  }
}

TEST(ScratchBytes, Bf16ProductsTakeTheirsFromThePoolToo) {
  const Plan plan = SomePlan("bf16");
  for (const int threads : {1, 2}) {
    Kernels kernels(threads, DType::kBF16);
    for (int step = 0; step < 3; ++step) kernels.Run();
    const ScratchBytes predicted = ScratchBytesOf(
        plan,
        {.threads = threads, .bf16_instructions = kernels.bf16_instructions()});
    EXPECT_LE(kernels.pool_bytes(), predicted.total()) << threads;
    // One of the blocks, which attention's may be beside.
    if (kernels.bf16_instructions()) continue;
    EXPECT_GE(kernels.pool_bytes(), predicted.products * 9 / 10) << threads;
  }
}

// [1024, 256] x [256, 32000], as oneDNN packs it: 19,968 columns of the table,
// and 384 x 384 for each of two threads.
TEST(ScratchBytes, F32ProductsPackTheVocabulary) {
  Plan plan = SomePlan("f32");
  for (UnitTable& table : *plan.mutable_tables()) {
    for (TensorSpec& tensor : *table.mutable_tensors()) {
      Dim& columns = *tensor.mutable_dims(tensor.dims_size() - 1);
      if (DimSize(columns) != kVocabulary) continue;
      columns.mutable_sections(0)->set_count(32000);
    }
  }
  EXPECT_EQ(ScratchBytesOf(plan, {.threads = 2}).products,
            4 * (19968 * 256 + 2 * 384 * 384));
}

// Packed in f32: a block of 1,026 x 1,024 sums, and what is multiplied.
TEST(ScratchBytes, Bf16WithoutInstructionsTakesOneBlockForAllThreads) {
  const Plan plan = SomePlan("bf16");
  const int64_t packed = ScratchBytesOf(plan, {.threads = 1}).products;
  EXPECT_EQ(packed, 4 * ((1026 + 1024) * 256 + 1026 * 1024));
  EXPECT_EQ(ScratchBytesOf(plan, {.threads = 8}).products, packed);
  EXPECT_EQ(
      ScratchBytesOf(plan, {.threads = 2, .bf16_instructions = true}).products,
      3 << 20);
}

// The first product is [rows, width] x [width, 3 width].
TEST(ScratchBytes, TheHeapKeepsSevenTimesWhatTheFirstF32ProductPacks) {
  EXPECT_EQ(ScratchBytesOf(SomePlan("f32"), {.threads = 1}).heap,
            7 * 4 * 3 * kWidth * kWidth);
  EXPECT_EQ(ScratchBytesOf(SomePlan("bf16"), {.threads = 1}).heap, 0);
}

// Of ring self-attention, scores are products like any other: here of queries
// with 2,400 keys of 16 columns, which pack more than gradients of weights of 64
// columns do. Columns are packed 48 at once.
TEST(ScratchBytes, CountProductsOfScores) {
  constexpr int64_t kKeys = 2400;
  const auto products = [](const std::string& method) {
    JobSpec job = ExampleJob({.micro_batch_size = 1});
    job.mutable_model()->set_num_attention_heads(1);
    job.mutable_model()->set_max_position_embeddings(2 * kKeys);
    job.mutable_training()->set_sequence_length(2 * kKeys);
    job.mutable_parallelism()->set_context(2);
    job.mutable_parallelism()->set_context_method(method);
    return ScratchBytesOf(ExamplePlan(job), {.threads = 1}).products;
  };
  EXPECT_EQ(products("ring"), 4 * (96 * 384 + 384 * 384));
  EXPECT_EQ(products("ring_self_attention"), 4 * (kKeys * 16 + 384 * 384));
}

TEST(ScratchBytes, GrowWithThreadsAndLength) {
  const Plan plan = SomePlan("f32");
  EXPECT_GT(ScratchBytesOf(plan, {.threads = 2}).total(),
            ScratchBytesOf(plan, {.threads = 1}).total());
  const Plan longer = SomePlan("f32", 4 * kLength);
  EXPECT_GT(ScratchBytesOf(longer, {.threads = 1}).attention,
            ScratchBytesOf(plan, {.threads = 1}).attention);
}

}  // namespace
}  // namespace troupe
