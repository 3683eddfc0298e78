#include "ops/matmul.h"

#include <algorithm>

#include "tests/ops/devices.h"

namespace troupe {
namespace {

// Of a, b and the bias; of c and the pre-activation.
struct Types {
  DType in, out;
};

class MatMulTest : public OpTest {
 protected:
  std::vector<Types> AllTypes() const {
    std::vector<Types> types;
    for (const DType in : ActivationTypes()) {
      types.push_back({in, in});
      if (in != DType::kF32) types.push_back({in, DType::kF32});
    }
    return types;
  }
};

std::ostream& operator<<(std::ostream& out, const Types& types) {
  return out << DTypeName(types.in) << " into " << DTypeName(types.out);
}

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
  for (const Types& types : AllTypes()) {
    for (const Sizes& s : {Sizes{1, 1, 1}, Sizes{3, 17, 65}, Sizes{65, 129, 3},
                           Sizes{129, 1, 17}, Sizes{1, 131, 67}}) {
      for (int which = 0; which < 8; ++which) {
        const bool ta = which & 1, tb = which & 2, accumulate = which & 4;
        const Values a = Random(types.in, s.m * s.k);
        const Values b = Random(types.in, s.k * s.n);
        const Values before = Random(types.out, s.m * s.n);
        Values want = Product(s, a, ta, b, tb);
        if (accumulate) {
          for (size_t i = 0; i < want.size(); ++i) want[i] += before[i];
        }
        const TestTensor ta_(device(),
                             ta ? std::vector{s.k, s.m} : std::vector{s.m, s.k},
                             a, types.in);
        const TestTensor tb_(device(),
                             tb ? std::vector{s.n, s.k} : std::vector{s.k, s.n},
                             b, types.in);
        const TestTensor tc(device(), {s.m, s.n}, before, types.out);
        MatMul(device(), {.a = ta_,
                          .b = tb_,
                          .c = tc,
                          .transpose_a = ta,
                          .transpose_b = tb,
                          .accumulate = accumulate});
        EXPECT_LT(RelativeError(tc.Read(), want), ErrorOf(types.out))
            << types << " " << s.m << " " << s.n << " " << s.k << " case "
            << which;
      }
    }
  }
}

// With and without a bias; the residual, and what it is added to, as parts of
// wider rows.
TEST_P(MatMulTest, AddsAResidual) {
  for (const Types& types : AllTypes()) {
    for (const Sizes& s :
         {Sizes{1, 1, 1}, Sizes{3, 17, 65}, Sizes{64, 128, 32}}) {
      for (const bool has_bias : {false, true}) {
        const int64_t wide = s.n + 8;
        const Values a = Random(types.in, s.m * s.k);
        const Values b = Random(types.in, s.k * s.n);
        const Values bias = Random(types.in, s.n);
        const Values residual = Random(types.out, s.m * wide);
        Values want = Product(s, a, false, b, false);
        for (int64_t i = 0; i < s.m * s.n; ++i) {
          want[i] += residual[i / s.n * wide + 8 + i % s.n] +
                     (has_bias ? bias[i % s.n] : 0);
        }
        const TestTensor ta(device(), {s.m, s.k}, a, types.in);
        const TestTensor tb(device(), {s.k, s.n}, b, types.in);
        const TestTensor tbias(device(), {s.n}, bias, types.in);
        const TestTensor all(device(), {s.m, wide}, residual, types.out);
        const TestTensor c(device(), types.out, {s.m, s.n});
        MatMul(device(), {.a = ta,
                          .b = tb,
                          .c = c,
                          .bias = has_bias ? tbias.tensor() : Tensor(),
                          .residual = all.tensor().Slice(1, 8, wide)});
        // Rounded twice at most.
        EXPECT_LT(RelativeError(c.Read(), want), 2 * ErrorOf(types.out))
            << types << " " << s.m << " " << s.n << " " << s.k;
        EXPECT_EQ(all.Read(), residual);
      }
    }
  }
}

// Longer than any block of a kernel in each direction.
TEST_P(MatMulTest, ManyBlocks) {
  for (const Types& types : AllTypes()) {
    for (const Sizes& s :
         {Sizes{3, 5, 2100}, Sizes{1030, 7, 40}, Sizes{7, 2100, 40}}) {
      const Values a = Random(types.in, s.m * s.k);
      const Values b = Random(types.in, s.k * s.n);
      const Values bias = Random(types.in, s.n);
      Values want = Product(s, a, false, b, true);
      for (size_t i = 0; i < want.size(); ++i) want[i] += bias[i % s.n];
      const TestTensor ta(device(), {s.m, s.k}, a, types.in);
      const TestTensor tb(device(), {s.n, s.k}, b, types.in);
      const TestTensor tbias(device(), {s.n}, bias, types.in);
      const TestTensor c(device(), types.out, {s.m, s.n});
      MatMul(device(),
             {.a = ta, .b = tb, .c = c, .transpose_b = true, .bias = tbias});
      EXPECT_LT(RelativeError(c.Read(), want), ErrorOf(types.out))
          << types << " " << s.m << " " << s.n << " " << s.k;
    }
  }
}

// Of bf16, on the threads of the options: c += a^T b in f32, then a^T b with
// a bias in bf16.
std::vector<Values> ProductsOnThreads(const CpuDeviceOptions& options,
                                      const Sizes& s, const Values& a,
                                      const Values& b, const Values& bias) {
  const auto device = NewCpuDevice(options);
  const TestTensor ta(*device, {s.k, s.m}, a, DType::kBF16);
  const TestTensor tb(*device, {s.k, s.n}, b, DType::kBF16);
  const TestTensor tbias(*device, {s.n}, bias, DType::kBF16);
  const TestTensor sums(*device, {s.m, s.n}, Values(s.m * s.n, 1.0));
  const TestTensor c(*device, DType::kBF16, {s.m, s.n});
  MatMul(
      *device,
      {.a = ta, .b = tb, .c = sums, .transpose_a = true, .accumulate = true});
  MatMul(*device,
         {.a = ta, .b = tb, .c = c, .transpose_a = true, .bias = tbias});
  return {sums.Read(), c.Read()};
}

// How c is cut follows from how many threads there are, in one case more than a
// product of ours can use; each element is added up in the same order. Of
// oneDNN's products nothing says so.
TEST_P(MatMulTest, SumsOnAnyNumberOfThreads) {
  if (device().kind() != DeviceKind::kCpu) GTEST_SKIP() << "no threads";
  CpuDeviceOptions options = GetParam().cpu;
  const std::string& set = options.instruction_set;
  const bool ours = set == "baseline" || set == "avx2" || set == "avx512";
  for (const Sizes& s : {Sizes{70, 150, 600}, Sizes{1100, 33, 300},
                         Sizes{5, 1500, 520}, Sizes{3, 16, 60000}}) {
    const Values a = Random(DType::kBF16, s.m * s.k);
    const Values b = Random(DType::kBF16, s.k * s.n);
    const Values bias = Random(DType::kBF16, s.n);
    Values sums = Product(s, a, true, b, false), c = sums;
    for (size_t i = 0; i < c.size(); ++i) {
      sums[i] += 1;
      c[i] += bias[i % s.n];
    }
    std::vector<Values> first;
    for (const int threads : {1, 2, 5}) {
      options.threads = threads;
      const std::vector<Values> got = ProductsOnThreads(options, s, a, b, bias);
      EXPECT_LT(RelativeError(got[0], sums), kF32Error) << threads;
      EXPECT_LT(RelativeError(got[1], c), kBF16Error) << threads;
      if (first.empty()) first = got;
      if (ours) {
        EXPECT_EQ(got, first) << threads;
      }
    }
  }
}

// Rows of 64 columns are what a device may have fused code for.
TEST_P(MatMulTest, BiasAndGelu) {
  for (const Types& types : AllTypes()) {
    for (const Sizes& s : {Sizes{17, 67, 33}, Sizes{17, 64, 40}}) {
      const Values a = Random(types.in, s.m * s.k);
      const Values b = Random(types.in, s.k * s.n);
      const Values bias = Random(types.in, s.n);
      Values pre = Product(s, a, false, b, false);
      for (size_t i = 0; i < pre.size(); ++i) pre[i] += bias[i % s.n];
      Values want = AsStored(types.out, pre);
      for (double& v : want) v = GeluOf(v);
      const TestTensor ta(device(), {s.m, s.k}, a, types.in);
      const TestTensor tb(device(), {s.k, s.n}, b, types.in);
      const TestTensor tbias(device(), {s.n}, bias, types.in);
      const TestTensor c(device(), types.out, {s.m, s.n});
      const TestTensor tpre(device(), types.out, {s.m, s.n});
      MatMul(device(), {.a = ta, .b = tb, .c = c, .bias = tbias});
      EXPECT_LT(RelativeError(c.Read(), pre), ErrorOf(types.out)) << types;
      MatMul(device(), {.a = ta,
                        .b = tb,
                        .c = c,
                        .bias = tbias,
                        .activation = Activation::kGelu,
                        .pre_activation = tpre});
      const Values with_pre = c.Read();
      EXPECT_LT(RelativeError(with_pre, want), ErrorOf(types.out)) << types;
      EXPECT_LT(RelativeError(tpre.Read(), pre), ErrorOf(types.out)) << types;
      MatMul(device(), {.a = ta,
                        .b = tb,
                        .c = c,
                        .bias = tbias,
                        .activation = Activation::kGelu});
      EXPECT_EQ(c.Read(), with_pre) << types;
    }
  }
}

double SlopeOf(double x) {
  constexpr double kStep = 1e-5;
  return (GeluOf(x + kStep) - GeluOf(x - kStep)) / (2 * kStep);
}

// A product, then the backward of the GELU before it.
TEST_P(MatMulTest, GeluSlope) {
  for (const DType dtype : ActivationTypes()) {
    for (const Sizes& s : {Sizes{17, 67, 33}, Sizes{17, 64, 40}}) {
      for (const bool transposed : {false, true}) {
        const Values a = Random(dtype, s.m * s.k);
        const Values b = Random(dtype, s.k * s.n);
        const Values x = Random(dtype, s.m * s.n, 2.0);
        Values want = Product(s, a, false, b, transposed);
        for (size_t i = 0; i < want.size(); ++i) want[i] *= SlopeOf(x[i]);
        const TestTensor ta(device(), {s.m, s.k}, a, dtype);
        const TestTensor tb(
            device(),
            transposed ? std::vector{s.n, s.k} : std::vector{s.k, s.n}, b,
            dtype);
        const TestTensor tx(device(), {s.m, s.n}, x, dtype);
        const TestTensor c(device(), dtype, {s.m, s.n});
        MatMul(device(), {.a = ta,
                          .b = tb,
                          .c = c,
                          .transpose_b = transposed,
                          .gelu_input = tx});
        EXPECT_LT(RelativeError(c.Read(), want), ErrorOf(dtype))
            << DTypeName(dtype) << " " << s.n << " columns";
      }
    }
  }
}

// Rows of `stride`, with something behind each.
Values Widened(const Values& values, int64_t rows, int64_t columns,
               int64_t stride) {
  Values wide(rows * stride, 7.0);
  for (int64_t i = 0; i < rows; ++i) {
    std::copy_n(values.begin() + i * columns, columns,
                wide.begin() + i * stride);
  }
  return wide;
}

// Columns of wider matrices, as a and c and as both transposed.
TEST_P(MatMulTest, StridedRows) {
  const Sizes s{5, 6, 7};
  for (const Types& types : AllTypes()) {
    for (const bool transposed : {false, true}) {
      const int64_t rows = transposed ? s.k : s.m;
      const int64_t columns = transposed ? s.m : s.k;
      const Values a = Random(types.in, rows * 10);
      const Values b = Random(types.in, s.k * s.n);
      Values dense;
      for (int64_t i = 0; i < rows; ++i) {
        const auto row = a.begin() + i * 10 + 2;
        dense.insert(dense.end(), row, row + columns);
      }
      const TestTensor ta(device(), {rows, 10}, a, types.in);
      const TestTensor tb(device(), {s.k, s.n}, b, types.in);
      const TestTensor c(device(), {s.m, 8}, Values(s.m * 8, 3.0), types.out);
      MatMul(device(), {.a = ta.tensor().Slice(1, 2, 2 + columns),
                        .b = tb,
                        .c = c.tensor().Slice(1, 1, 7),
                        .transpose_a = transposed});
      const Values got = c.Read();
      const Values want = Product(s, dense, transposed, b, false);
      Values inside;
      for (int64_t i = 0; i < s.m; ++i) {
        EXPECT_EQ(got[i * 8], 3.0);
        EXPECT_EQ(got[i * 8 + 7], 3.0);
        inside.insert(inside.end(), got.begin() + i * 8 + 1,
                      got.begin() + i * 8 + 7);
      }
      EXPECT_LT(RelativeError(inside, want), ErrorOf(types.out)) << types;
    }
  }
}

// Rows that begin at whole vectors and end within one, of each dim in turn:
// what a vocabulary of odd size makes of the three products of its layer.
TEST_P(MatMulTest, DimsThatAreNoWholeVectors) {
  constexpr int64_t kOdd = 1027, kStride = 1056;
  for (const Types& types : AllTypes()) {
    for (const Sizes& s : {Sizes{24, kOdd, 40}, Sizes{24, 40, kOdd},
                           Sizes{kOdd, 40, 24}, Sizes{kOdd, kOdd, 24}}) {
      for (const bool accumulate : {false, true}) {
        const auto stride = [](int64_t columns) {
          return columns == kOdd ? kStride : columns;
        };
        // a as its transpose where m is odd, b where n is.
        const bool turn_a = s.m == kOdd, turn_b = s.n == kOdd && s.m != kOdd;
        const Values a = Random(types.in, s.m * s.k);
        const Values b = Random(types.in, s.k * s.n);
        const auto wide = [&](const Values& values, int64_t rows,
                              int64_t columns) {
          return Widened(values, rows, columns, stride(columns));
        };
        const int64_t a_rows = turn_a ? s.k : s.m,
                      a_columns = turn_a ? s.m : s.k;
        const int64_t b_rows = turn_b ? s.n : s.k,
                      b_columns = turn_b ? s.k : s.n;
        const TestTensor ta(device(), {a_rows, stride(a_columns)},
                            wide(a, a_rows, a_columns), types.in);
        const TestTensor tb(device(), {b_rows, stride(b_columns)},
                            wide(b, b_rows, b_columns), types.in);
        const TestTensor c(device(), {s.m, stride(s.n)},
                           Values(s.m * stride(s.n), 3.0), types.out);
        MatMul(device(), {.a = ta.tensor().Slice(1, 0, a_columns),
                          .b = tb.tensor().Slice(1, 0, b_columns),
                          .c = c.tensor().Slice(1, 0, s.n),
                          .transpose_a = turn_a,
                          .transpose_b = turn_b,
                          .accumulate = accumulate});
        Values want = Product(s, a, turn_a, b, turn_b);
        if (accumulate) {
          for (double& value : want) value += 3.0;
        }
        const Values got = c.Read();
        Values inside;
        for (int64_t i = 0; i < s.m; ++i) {
          const auto row = got.begin() + i * stride(s.n);
          inside.insert(inside.end(), row, row + s.n);
          EXPECT_EQ(std::count(row + s.n, row + stride(s.n), 3.0),
                    stride(s.n) - s.n);
        }
        EXPECT_LT(RelativeError(inside, want), ErrorOf(types.out)) << types;
      }
    }
  }
}

TEST_P(MatMulTest, Repeats) {
  for (const Types& types : AllTypes()) {
    const TestTensor a(device(), {200, 300}, Random(60000), types.in);
    const TestTensor b(device(), {300, 150}, Random(45000), types.in);
    const TestTensor c(device(), types.out, {200, 150});
    MatMul(device(), {.a = a, .b = b, .c = c});
    const Values first = c.Read();
    MatMul(device(), {.a = a, .b = b, .c = c});
    EXPECT_EQ(first, c.Read()) << types;
  }
}

TEST_P(MatMulTest, WrongShapesDie) {
  const TestTensor a(device(), {2, 3}, Random(6));
  const TestTensor c(device(), {2, 2}, Random(4));
  EXPECT_DEATH(MatMul(device(), {.a = a, .b = a, .c = c}), "f32\\[2, 3\\]");
  const TestTensor b(device(), DType::kBF16, {3, 2});
  EXPECT_DEATH(MatMul(device(), {.a = a, .b = b, .c = c}), "bf16\\[3, 2\\]");
  const TestTensor square(device(), {3, 3}, Random(9));
  EXPECT_DEATH(MatMul(device(), {.a = a, .b = square, .c = a, .gelu_input = c}),
               "f32\\[2, 2\\]");
}

TROUPE_ON_EACH_DEVICE(MatMulTest);

}  // namespace
}  // namespace troupe
