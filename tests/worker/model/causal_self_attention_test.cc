#include "worker/model/causal_self_attention.h"

#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "tests/worker/model/numeric.h"

namespace troupe {
namespace {

constexpr int64_t kBatch = 2;
constexpr int64_t kTime = 5;
constexpr int64_t kWidth = 6;
constexpr int kHeads = 2;
constexpr int64_t kRows = kBatch * kTime;

class CausalSelfAttentionTest : public testing::Test {
 protected:
  CausalSelfAttentionTest()
      : device_(NewCpuDevice({.threads = 1})),
        unit_(UnitWith({{"attn.c_attn.weight", {kWidth, 3 * kWidth}},
                        {"attn.c_attn.bias", {3 * kWidth}},
                        {"attn.c_proj.weight", {kWidth, kWidth}},
                        {"attn.c_proj.bias", {kWidth}}})),
        attention_(
            *CausalSelfAttention::Create(unit_, {.qkv = {"attn.c_attn"},
                                                 .out = "attn.c_proj",
                                                 .width = kWidth,
                                                 .heads = kHeads,
                                                 .kv_heads = kHeads,
                                                 .head_dim = kWidth / kHeads})),
        parameters_(*device_, unit_.flat_elements() * 4),
        gradients_(*device_, unit_.flat_elements() * 4) {
    FillRandom(parameters_.span(), 1);
    FillRandom(absl::MakeSpan(x_), 2);
    FillRandom(absl::MakeSpan(dy_), 3);
    gradients_.Zero();
  }

  static Tensor View(std::vector<float>& v) {
    return Tensor(v.data(), DType::kF32,
                  {kBatch, kTime, static_cast<int64_t>(v.size()) / kRows});
  }
  Tensor LogSumExp() {
    return Tensor(logsumexp_.data(), DType::kF32, {kBatch, kHeads, kTime});
  }
  void Forward() {
    attention_.Forward(*device_, parameters_.get(),
                       {.x = View(x_),
                        .qkv = View(qkv_),
                        .o = View(o_),
                        .logsumexp = LogSumExp(),
                        .y = View(y_),
                        .dropout = dropout_});
  }

  std::unique_ptr<Device> device_;
  const Unit unit_;
  const CausalSelfAttention attention_;
  DeviceMemory parameters_, gradients_;
  AttentionDropout dropout_;
  std::vector<float> x_ = std::vector<float>(kRows * kWidth);
  std::vector<float> y_ = x_, dy_ = x_, dx_ = x_, o_ = x_, d_o_ = x_;
  std::vector<float> qkv_ = std::vector<float>(kRows * 3 * kWidth);
  std::vector<float> dqkv_ = qkv_;
  std::vector<float> logsumexp_ = std::vector<float>(kBatch * kHeads * kTime);
};

TEST_F(CausalSelfAttentionTest, BackwardAgreesWithFiniteDifferences) {
  for (const float probability : {0.0f, 0.3f}) {
    dropout_ = {.probability = probability,
                .stream = {.seed = 5, .purpose = RandomPurpose::kDropout},
                .first_sample = 3};
    gradients_.Zero();
    Forward();
    attention_.BackwardInput(*device_, parameters_.get(),
                             {.dy = View(dy_),
                              .qkv = View(qkv_),
                              .o = View(o_),
                              .logsumexp = LogSumExp(),
                              .d_o = View(d_o_),
                              .dqkv = View(dqkv_),
                              .dx = View(dx_),
                              .dropout = dropout_});
    attention_.BackwardWeight(
        *device_, gradients_.get(),
        {.x = View(x_), .dqkv = View(dqkv_), .o = View(o_), .dy = View(dy_)});
    const auto loss = [&] {
      Forward();
      return Dot(y_, dy_);
    };
    EXPECT_LT(GradientError(loss, absl::MakeSpan(x_), dx_), 1e-3);
    EXPECT_LT(GradientError(loss, parameters_.span(), gradients_.span()), 1e-3);
  }
}

TEST_F(CausalSelfAttentionTest, TheFutureDoesNotMatter) {
  Forward();
  const std::vector<float> before = y_;
  for (int64_t i = 3 * kWidth; i < kTime * kWidth; ++i) x_[i] += 1;
  Forward();
  for (int64_t i = 0; i < 3 * kWidth; ++i) EXPECT_EQ(y_[i], before[i]);
  for (int64_t i = 3 * kWidth; i < kTime * kWidth; ++i) {
    EXPECT_NE(y_[i], before[i]);
  }
  for (int64_t i = kTime * kWidth; i < kRows * kWidth; ++i) {
    EXPECT_EQ(y_[i], before[i]) << "the other sequence";
  }
}

TEST_F(CausalSelfAttentionTest, DecodingInPiecesIsTheForwardOfTheWhole) {
  Forward();
  constexpr int64_t kPositions = 8;
  DeviceMemory cache(*device_, kPositions * 2 * kWidth * 4);
  std::vector<float> qkv(kTime * 3 * kWidth), o(kTime * kWidth),
      y(kTime * kWidth);
  const int64_t starts[] = {0, 3, 4, kTime};
  for (int piece = 0; piece < 3; ++piece) {
    const int64_t begin = starts[piece];
    const int64_t count = starts[piece + 1] - begin;
    attention_.Decode(
        *device_, parameters_.get(),
        {.x = View(x_).Slice(0, 0, 1).Slice(1, begin, begin + count),
         .qkv = Tensor(qkv.data(), DType::kF32, {1, count, 3 * kWidth}),
         .o = Tensor(o.data(), DType::kF32, {1, count, kWidth}),
         .y =
             Tensor(y.data() + begin * kWidth, DType::kF32, {1, count, kWidth}),
         .cache = Tensor(cache.get(), DType::kF32, {1, kPositions, 2 * kWidth}),
         .position = begin});
  }
  EXPECT_LT(RelativeError(y, absl::MakeSpan(y_).subspan(0, y.size())), 1e-5);
}

}  // namespace
}  // namespace troupe
