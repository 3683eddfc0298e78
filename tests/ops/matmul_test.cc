#include "ops/matmul.h"

#include "tests/ops/devices.h"

namespace troupe {
namespace {

class MatMulTest : public OpTest {};

double GeluOf(double x) {
  return 0.5 * x *
         (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

struct Sizes {
  int64_t m, n, k;
};

Values Product(const Sizes& s, const Values& a, bool ta, const Values& b,
               bool tb) {
  Values c(s.m * s.n);
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < s.k; ++p) {
        sum += a[ta ? p * s.m + i : i * s.k + p] *
               b[tb ? j * s.k + p : p * s.n + j];
      }
      c[i * s.n + j] = sum;
    }
  }
  return c;
}

TEST_P(MatMulTest, AllTransposesAndAccumulation) {
  for (const Sizes& s : {Sizes{1, 1, 1}, Sizes{3, 17, 65}, Sizes{65, 129, 3},
                         Sizes{129, 1, 17}, Sizes{1, 131, 67}}) {
    for (int which = 0; which < 8; ++which) {
      const bool ta = which & 1, tb = which & 2, accumulate = which & 4;
      const Values a = Random(s.m * s.k), b = Random(s.k * s.n);
      const Values before = Random(s.m * s.n);
      Values want = Product(s, a, ta, b, tb);
      if (accumulate) {
        for (size_t i = 0; i < want.size(); ++i) want[i] += before[i];
      }
      const TestTensor ta_(
          device(), ta ? std::vector{s.k, s.m} : std::vector{s.m, s.k}, a);
      const TestTensor tb_(
          device(), tb ? std::vector{s.n, s.k} : std::vector{s.k, s.n}, b);
      const TestTensor tc(device(), {s.m, s.n}, before);
      MatMul(device(), {.a = ta_,
                        .b = tb_,
                        .c = tc,
                        .transpose_a = ta,
                        .transpose_b = tb,
                        .accumulate = accumulate});
      EXPECT_LT(RelativeError(tc.Read(), want), kF32Error)
          << s.m << " " << s.n << " " << s.k << " case " << which;
    }
  }
}

TEST_P(MatMulTest, BiasAndGelu) {
  const Sizes s{17, 67, 33};
  const Values a = Random(s.m * s.k), b = Random(s.k * s.n), bias = Random(s.n);
  Values pre = Product(s, a, false, b, false);
  Values want(pre.size());
  for (size_t i = 0; i < pre.size(); ++i) {
    pre[i] += bias[i % s.n];
    want[i] = GeluOf(pre[i]);
  }
  const TestTensor ta(device(), {s.m, s.k}, a), tb(device(), {s.k, s.n}, b);
  const TestTensor tbias(device(), {s.n}, bias);
  const TestTensor c(device(), DType::kF32, {s.m, s.n});
  const TestTensor tpre(device(), DType::kF32, {s.m, s.n});
  MatMul(device(), {.a = ta, .b = tb, .c = c, .bias = tbias});
  EXPECT_LT(RelativeError(c.Read(), pre), kF32Error);
  MatMul(device(), {.a = ta,
                    .b = tb,
                    .c = c,
                    .bias = tbias,
                    .activation = Activation::kGelu,
                    .pre_activation = tpre});
  EXPECT_LT(RelativeError(c.Read(), want), kF32Error);
  EXPECT_LT(RelativeError(tpre.Read(), pre), kF32Error);
  MatMul(device(), {.a = ta,
                    .b = tb,
                    .c = c,
                    .bias = tbias,
                    .activation = Activation::kGelu});
  EXPECT_LT(RelativeError(c.Read(), want), kF32Error);
}

TEST_P(MatMulTest, StridedRows) {
  const Sizes s{5, 6, 7};
  const Values a = Random(s.m * 10), b = Random(s.k * s.n);
  Values dense;
  for (int64_t i = 0; i < s.m; ++i) {
    dense.insert(dense.end(), a.begin() + i * 10 + 2, a.begin() + i * 10 + 9);
  }
  const TestTensor ta(device(), {s.m, 10}, a), tb(device(), {s.k, s.n}, b);
  const TestTensor c(device(), {s.m, 8}, Values(s.m * 8, 3.0));
  MatMul(device(), {.a = ta.tensor().Slice(1, 2, 9),
                    .b = tb,
                    .c = c.tensor().Slice(1, 1, 7)});
  const Values got = c.Read(), want = Product(s, dense, false, b, false);
  for (int64_t i = 0; i < s.m; ++i) {
    EXPECT_EQ(got[i * 8], 3.0);
    EXPECT_EQ(got[i * 8 + 7], 3.0);
    for (int64_t j = 0; j < s.n; ++j) {
      EXPECT_NEAR(got[i * 8 + 1 + j], want[i * s.n + j], 1e-5);
    }
  }
}

TEST_P(MatMulTest, Repeats) {
  const TestTensor a(device(), {200, 300}, Random(60000));
  const TestTensor b(device(), {300, 150}, Random(45000));
  const TestTensor c(device(), DType::kF32, {200, 150});
  MatMul(device(), {.a = a, .b = b, .c = c});
  const Values first = c.Read();
  MatMul(device(), {.a = a, .b = b, .c = c});
  EXPECT_EQ(first, c.Read());
}

TEST_P(MatMulTest, WrongShapesDie) {
  const TestTensor a(device(), {2, 3}, Random(6));
  const TestTensor c(device(), {2, 2}, Random(4));
  EXPECT_DEATH(MatMul(device(), {.a = a, .b = a, .c = c}), "f32\\[2, 3\\]");
}

TROUPE_ON_EACH_DEVICE(MatMulTest);

}  // namespace
}  // namespace troupe
