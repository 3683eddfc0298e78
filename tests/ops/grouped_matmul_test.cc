#include "ops/grouped_matmul.h"

#include <algorithm>

#include "tests/ops/devices.h"

namespace troupe {
namespace {

class GroupedMatMulTest : public OpTest {};

// The rows of each group, and rows behind that are none's.
struct Case {
  std::vector<int> groups;
  int64_t behind, k, n;

  int64_t rows() const {
    int64_t sum = behind;
    for (const int rows : groups) sum += rows;
    return sum;
  }
  int64_t count() const { return static_cast<int64_t>(groups.size()); }
  Values offsets() const {
    Values offsets = {0};
    for (const int rows : groups) offsets.push_back(offsets.back() + rows);
    return offsets;
  }
};
// Groups without rows, all rows in one, one group, more rows and columns than a
// block has, and only rows behind.
const Case kCases[] = {{{1}, 0, 1, 1},          {{3, 0, 17, 1, 0}, 2, 65, 33},
                       {{0, 0, 40}, 0, 7, 129}, {{600, 5, 33}, 9, 40, 31},
                       {{20, 270}, 0, 11, 790}, {{0, 0}, 3, 5, 6}};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  for (const int rows : c.groups) out << rows << " ";
  return out << "rows of " << c.k << " by " << c.n;
}

// The group of each row, -1 behind.
std::vector<int64_t> GroupOfRows(const Case& c) {
  std::vector<int64_t> of(c.rows(), -1);
  auto next = of.begin();
  for (int64_t group = 0; group < c.count(); ++group) {
    next = std::fill_n(next, c.groups[group], group);
  }
  return of;
}

// c, from what it was before; rows behind stay.
Values Product(const Case& c, const Values& a, const Values& b, bool transpose,
               const Values& before, bool accumulate) {
  Values result = before;
  const std::vector<int64_t> group = GroupOfRows(c);
  for (int64_t i = 0; i < c.rows(); ++i) {
    if (group[i] < 0) continue;
    const double* const matrix = b.data() + group[i] * c.k * c.n;
    for (int64_t j = 0; j < c.n; ++j) {
      double sum = accumulate ? before[i * c.n + j] : 0;
      for (int64_t p = 0; p < c.k; ++p) {
        sum += a[i * c.k + p] * matrix[transpose ? j * c.k + p : p * c.n + j];
      }
      result[i * c.n + j] = sum;
    }
  }
  return result;
}

TEST_P(GroupedMatMulTest, EachRowByTheMatrixOfItsGroup) {
  for (const DType dtype : ActivationTypes()) {
    for (const Case& c : kCases) {
      for (const bool transpose : {false, true}) {
        for (const bool accumulate : {false, true}) {
          const Values a = Random(dtype, c.rows() * c.k);
          const Values b = Random(dtype, c.count() * c.k * c.n);
          const Values before = Random(dtype, c.rows() * c.n);
          const TestTensor ta(device(), {c.rows(), c.k}, a, dtype);
          const TestTensor tb(
              device(),
              {c.count(), transpose ? c.n : c.k, transpose ? c.k : c.n}, b,
              dtype);
          const TestTensor tc(device(), {c.rows(), c.n}, before, dtype);
          const TestTensor offsets(device(), {c.count() + 1}, c.offsets(),
                                   DType::kI32);
          GroupedMatMul(device(), {.a = ta,
                                   .b = tb,
                                   .c = tc,
                                   .offsets = offsets,
                                   .transpose_b = transpose,
                                   .accumulate = accumulate});
          const Values got = tc.Read();
          EXPECT_LT(RelativeError(
                        got, Product(c, a, b, transpose, before, accumulate)),
                    ErrorOf(dtype))
              << DTypeName(dtype) << " " << c;
          for (int64_t i = (c.rows() - c.behind) * c.n; i < c.rows() * c.n;
               ++i) {
            EXPECT_EQ(got[i], before[i]) << "behind the last group";
          }
        }
      }
    }
  }
}

TEST_P(GroupedMatMulTest, WeightGradient) {
  for (const DType dtype : ActivationTypes()) {
    for (const DType of_dw : GradientTypes(dtype)) {
      for (const Case& c : kCases) {
        for (const bool accumulate : {false, true}) {
          const int64_t in = c.k, out = c.n;
          const Values x = Random(dtype, c.rows() * in);
          const Values dy = Random(dtype, c.rows() * out);
          const Values before = Random(of_dw, c.count() * out * in);
          Values want = accumulate ? before : Values(before.size());
          const std::vector<int64_t> group = GroupOfRows(c);
          for (int64_t i = 0; i < c.rows(); ++i) {
            if (group[i] < 0) continue;
            double* const dw = want.data() + group[i] * out * in;
            for (int64_t o = 0; o < out; ++o) {
              for (int64_t j = 0; j < in; ++j) {
                dw[o * in + j] += dy[i * out + o] * x[i * in + j];
              }
            }
          }
          const TestTensor tx(device(), {c.rows(), in}, x, dtype);
          const TestTensor tdy(device(), {c.rows(), out}, dy, dtype);
          const TestTensor dw(device(), {c.count(), out, in}, before, of_dw);
          const TestTensor offsets(device(), {c.count() + 1}, c.offsets(),
                                   DType::kI32);
          GroupedWeightGradient(device(), {.x = tx,
                                           .dy = tdy,
                                           .offsets = offsets,
                                           .dw = dw,
                                           .accumulate = accumulate});
          const Values got = dw.Read();
          EXPECT_LT(RelativeError(got, want), ErrorOf(of_dw))
              << DTypeName(dtype) << " into " << DTypeName(of_dw) << " " << c;
          for (int64_t i = 0; i < c.count(); ++i) {
            if (c.groups[i] > 0) continue;
            EXPECT_EQ(got[i * out * in], want[i * out * in])
                << "of a group without rows";
          }
        }
      }
    }
  }
}

// Columns of wider matrices, and rows of taller ones: gate and up lie in one
// tensor.
TEST_P(GroupedMatMulTest, StridedRowsAndMatrices) {
  const Case c = {{4, 0, 9}, 1, 6, 5};
  const int64_t a_width = 10, c_width = 8, b_rows = 2 * c.n;
  for (const DType dtype : ActivationTypes()) {
    const Values wide_a = Random(dtype, c.rows() * a_width);
    const Values tall_b = Random(dtype, c.count() * b_rows * c.k);
    Values a, b;
    for (int64_t i = 0; i < c.rows(); ++i) {
      const auto row = wide_a.begin() + i * a_width + 2;
      a.insert(a.end(), row, row + c.k);
    }
    for (int64_t group = 0; group < c.count(); ++group) {
      const auto matrix = tall_b.begin() + (group * b_rows + c.n) * c.k;
      b.insert(b.end(), matrix, matrix + c.n * c.k);
    }
    const TestTensor ta(device(), {c.rows(), a_width}, wide_a, dtype);
    const TestTensor tb(device(), {c.count(), b_rows, c.k}, tall_b, dtype);
    const TestTensor tc(device(), {c.rows(), c_width},
                        Values(c.rows() * c_width, 3.0), dtype);
    const TestTensor offsets(device(), {c.count() + 1}, c.offsets(),
                             DType::kI32);
    GroupedMatMul(device(), {.a = ta.tensor().Slice(1, 2, 2 + c.k),
                             .b = tb.tensor().Slice(1, c.n, 2 * c.n),
                             .c = tc.tensor().Slice(1, 1, 1 + c.n),
                             .offsets = offsets,
                             .transpose_b = true});
    const Values got = tc.Read();
    Values inside;
    for (int64_t i = 0; i < c.rows(); ++i) {
      const auto row = got.begin() + i * c_width;
      EXPECT_EQ(row[0], 3.0);
      EXPECT_EQ(row[6], 3.0);
      inside.insert(inside.end(), row + 1, row + 1 + c.n);
    }
    EXPECT_LT(
        RelativeError(
            inside, Product(c, a, b, true, Values(c.rows() * c.n, 3.0), false)),
        ErrorOf(dtype));

    const TestTensor dw(device(), {c.count(), c.n, c.k},
                        Values(c.count() * c.n * c.k, 3.0));
    GroupedWeightGradient(device(), {.x = ta.tensor().Slice(1, 2, 2 + c.k),
                                     .dy = tc.tensor().Slice(1, 1, 1 + c.n),
                                     .offsets = offsets,
                                     .dw = dw});
    Values want(c.count() * c.n * c.k);
    const std::vector<int64_t> group = GroupOfRows(c);
    for (int64_t i = 0; i < c.rows(); ++i) {
      if (group[i] < 0) continue;
      for (int64_t o = 0; o < c.n; ++o) {
        for (int64_t j = 0; j < c.k; ++j) {
          want[(group[i] * c.n + o) * c.k + j] +=
              inside[i * c.n + o] * a[i * c.k + j];
        }
      }
    }
    EXPECT_LT(RelativeError(dw.Read(), want), kF32Error);
  }
}

// Rows of one group, and rows behind, do not touch those of another.
TEST_P(GroupedMatMulTest, NotANumberStaysInItsRowAndGroup) {
  const Case c = {{5, 40, 7}, 3, 20, 18};
  for (const DType dtype : ActivationTypes()) {
    Values a = Random(dtype, c.rows() * c.k);
    const auto spoil = [&](int64_t row) { a[row * c.k + row % c.k] = NAN; };
    const std::vector<int64_t> spoiled = {2, 6, 54};
    for (const int64_t row : spoiled) spoil(row);
    const TestTensor ta(device(), {c.rows(), c.k}, a, dtype);
    const TestTensor tb(device(), {c.count(), c.k, c.n},
                        Random(dtype, c.count() * c.k * c.n), dtype);
    const TestTensor tc(device(), {c.rows(), c.n}, Values(c.rows() * c.n),
                        dtype);
    const TestTensor offsets(device(), {c.count() + 1}, c.offsets(),
                             DType::kI32);
    GroupedMatMul(device(), {.a = ta, .b = tb, .c = tc, .offsets = offsets});
    const Values got = tc.Read();
    for (int64_t i = 0; i < c.rows() * c.n; ++i) {
      const int64_t row = i / c.n;
      EXPECT_EQ(std::isnan(got[i]), row == 2 || row == 6) << row;
    }
    const TestTensor dw(device(), DType::kF32, {c.count(), c.n, c.k});
    const TestTensor ones(device(), {c.rows(), c.n},
                          Values(c.rows() * c.n, 1.0), dtype);
    GroupedWeightGradient(device(),
                          {.x = ta, .dy = ones, .offsets = offsets, .dw = dw});
    const Values gradient = dw.Read();
    for (int64_t i = 0; i < c.n * c.k; ++i) {
      EXPECT_EQ(std::isnan(gradient[i]), i % c.k == 2);
      EXPECT_EQ(std::isnan(gradient[c.n * c.k + i]), i % c.k == 6);
      EXPECT_FALSE(std::isnan(gradient[2 * c.n * c.k + i]));
    }
  }
}

// How many threads there are decides how c is cut; our own products add each
// element up in the same order. Of oneDNN's nothing says so.
TEST_P(GroupedMatMulTest, TheSameOnAnyNumberOfThreads) {
  if (device().kind() != DeviceKind::kCpu) GTEST_SKIP() << "no threads";
  const Case c = {{700, 0, 90, 31}, 5, 70, 420};
  const std::string& set = GetParam().cpu.instruction_set;
  const bool has_bf16 = set == "avx512_bf16" || set == "amx" || set.empty();
  for (const DType dtype : ActivationTypes()) {
    const Values a = Random(dtype, c.rows() * c.k);
    const Values b = Random(dtype, c.count() * c.k * c.n);
    std::vector<Values> first;
    for (const int threads : {1, 2, 12}) {
      CpuDeviceOptions options = GetParam().cpu;
      options.threads = threads;
      const std::unique_ptr<Device> device = NewCpuDevice(options);
      const TestTensor ta(*device, {c.rows(), c.k}, a, dtype);
      const TestTensor tb(*device, {c.count(), c.k, c.n}, b, dtype);
      const TestTensor tc(*device, {c.rows(), c.n}, Values(c.rows() * c.n),
                          dtype);
      const TestTensor dw(*device, DType::kF32, {c.count(), c.n, c.k});
      const TestTensor offsets(*device, {c.count() + 1}, c.offsets(),
                               DType::kI32);
      GroupedMatMul(*device, {.a = ta, .b = tb, .c = tc, .offsets = offsets});
      GroupedWeightGradient(*device,
                            {.x = ta, .dy = tc, .offsets = offsets, .dw = dw});
      const std::vector<Values> got = {tc.Read(), dw.Read()};
      if (first.empty()) first = got;
      if (dtype == DType::kF16 || (dtype == DType::kBF16 && !has_bf16)) {
        EXPECT_EQ(got, first) << DTypeName(dtype) << ", threads " << threads;
      }
      EXPECT_LT(RelativeError(got[0], first[0]), ErrorOf(dtype));
      EXPECT_LT(RelativeError(got[1], first[1]), ErrorOf(dtype));
    }
  }
}

TEST_P(GroupedMatMulTest, WrongShapesDie) {
  const TestTensor a(device(), {4, 3}, Random(12));
  const TestTensor b(device(), {2, 3, 5}, Random(30));
  const TestTensor c(device(), DType::kF32, {4, 5});
  const TestTensor offsets(device(), {3}, {0, 2, 4}, DType::kI32);
  EXPECT_DEATH(
      GroupedMatMul(
          device(),
          {.a = a, .b = b, .c = c, .offsets = offsets, .transpose_b = true}),
      "f32\\[2, 3, 5\\] transposed");
  EXPECT_DEATH(
      GroupedMatMul(
          device(),
          {.a = a, .b = b, .c = c, .offsets = offsets.tensor().Slice(0, 0, 2)}),
      "i32\\[2\\]");
  EXPECT_DEATH(GroupedWeightGradient(
                   device(), {.x = a, .dy = c, .offsets = offsets, .dw = b}),
               "f32\\[2, 3, 5\\]");
}

TEST_P(GroupedMatMulTest, OffsetsThatFallDie) {
  if (device().kind() != DeviceKind::kCpu) {
    GTEST_SKIP() << "a process that was forked cannot read a GPU's memory";
  }
  const TestTensor a(device(), {4, 3}, Random(12));
  const TestTensor b(device(), {2, 3, 5}, Random(30));
  const TestTensor c(device(), DType::kF32, {4, 5});
  const TestTensor falling(device(), {3}, {0, 4, 2}, DType::kI32);
  EXPECT_DEATH(
      GroupedMatMul(device(), {.a = a, .b = b, .c = c, .offsets = falling}),
      "group 1 has rows \\[4, 2\\)");
}

TROUPE_ON_EACH_DEVICE(GroupedMatMulTest);

}  // namespace
}  // namespace troupe
