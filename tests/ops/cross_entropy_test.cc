#include "ops/cross_entropy.h"

#include <algorithm>
#include <vector>

#include "tests/ops/devices.h"

namespace troupe {
namespace {

class CrossEntropyTest : public OpTest {
 protected:
  // The columns of a vocabulary that a rank has, and how wide its tensor is.
  struct Piece {
    int64_t first, columns, width;
  };
  struct Whole {
    DType dtype;
    int64_t rows, n;
    Values logits, targets;
  };

  // Uneven: the piece before the last has nothing but padding, others have 0 to
  // 2 columns of it.
  static std::vector<Piece> Cut(int64_t n, int count) {
    std::vector<Piece> pieces;
    for (int i = 0; i < count; ++i) {
      const int64_t first = i == 0 ? 0 : pieces.back().first;
      const int64_t begin = i == 0 ? 0 : first + pieces.back().columns;
      const bool empty = count > 2 && i == count - 2;
      const int64_t left = count - i - (count > 2 && i < count - 2 ? 1 : 0);
      const int64_t columns =
          empty ? 0 : (i + 1 == count ? n - begin : (n - begin + i % 2) / left);
      pieces.push_back({begin, columns, columns + (empty ? 3 : i % 3)});
    }
    return pieces;
  }

  // What a rank has: its columns, then padding that would show.
  static Values LogitsOf(const Whole& whole, const Piece& piece) {
    Values logits(whole.rows * piece.width, 3e5);
    for (int64_t r = 0; r < whole.rows; ++r) {
      for (int64_t i = 0; i < piece.columns; ++i) {
        logits[r * piece.width + i] =
            whole.logits[r * whole.n + piece.first + i];
      }
    }
    return AsStored(whole.dtype, logits);
  }

  // [ranks, rows, 3]
  Values PartsOf(const Whole& whole, const std::vector<Piece>& pieces) {
    const TestTensor targets(device(), {whole.rows}, whole.targets,
                             DType::kI32);
    Values all;
    for (const Piece& piece : pieces) {
      const TestTensor logits(device(), {whole.rows, piece.width},
                              LogitsOf(whole, piece), whole.dtype);
      const TestTensor parts(device(), DType::kF32, {whole.rows, 3});
      CrossEntropyParts(device(), {.logits = logits,
                                   .targets = targets,
                                   .parts = parts,
                                   .first_column = piece.first,
                                   .columns = piece.columns,
                                   .vocabulary = whole.n});
      const Values mine = parts.Read();
      all.insert(all.end(), mine.begin(), mine.end());
    }
    return all;
  }

  void ExpectAsTheWhole(const Whole& whole, const std::vector<Piece>& pieces);
};

// Each rank's losses are those of the whole and of the other ranks, bit for
// bit, and the columns of its gradient are the whole's.
void CrossEntropyTest::ExpectAsTheWhole(const Whole& whole,
                                        const std::vector<Piece>& pieces) {
  constexpr double kScale = 0.125;
  const int64_t rows = whole.rows, n = whole.n;
  Values losses(rows), gradient(rows * n);
  double total = 10, counted = 5;
  for (int64_t r = 0; r < rows; ++r) {
    if (whole.targets[r] < 0) continue;
    const double* row = &whole.logits[r * n];
    const double largest = *std::max_element(row, row + n);
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::exp(row[i] - largest);
    const auto target = static_cast<int64_t>(whole.targets[r]);
    losses[r] = std::log(sum) + largest - row[target];
    total += losses[r];
    ++counted;
    for (int64_t i = 0; i < n; ++i) {
      gradient[r * n + i] =
          (std::exp(row[i] - largest) / sum - (i == target)) * kScale;
    }
  }
  const auto ranks = static_cast<int64_t>(pieces.size());
  const TestTensor parts(device(), {ranks, rows, 3}, PartsOf(whole, pieces));
  const TestTensor targets(device(), {rows}, whole.targets, DType::kI32);
  Values first_losses, got(rows * n);
  for (const Piece& piece : pieces) {
    const TestTensor logits(device(), {rows, piece.width},
                            LogitsOf(whole, piece), whole.dtype);
    const TestTensor loss(device(), {1}, {10}, DType::kF64);
    const TestTensor count(device(), {1}, {5}, DType::kF64);
    const TestTensor row_losses(device(), {rows}, Values(rows, 7));
    CrossEntropyArgs args = {.logits = logits,
                             .targets = targets,
                             .loss_sum = loss,
                             .count = count,
                             .losses = row_losses,
                             .parts = parts,
                             .first_column = piece.first,
                             .columns = piece.columns,
                             .vocabulary = n,
                             .counts = false};
    CrossEntropy(device(), args);
    EXPECT_EQ(loss.Read()[0], 10);
    EXPECT_EQ(count.Read()[0], 5);
    EXPECT_EQ(row_losses.Read(), Values(rows, 7));
    args.counts = true;
    CrossEntropy(device(), args);
    EXPECT_NEAR(loss.Read()[0], total, 1e-6 * total);
    EXPECT_EQ(count.Read()[0], counted);
    EXPECT_LT(RelativeError(row_losses.Read(), losses), kF32Error);
    if (first_losses.empty()) first_losses = row_losses.Read();
    EXPECT_EQ(row_losses.Read(), first_losses);
    EXPECT_EQ(logits.Read(), LogitsOf(whole, piece));
    args.gradient = true;
    args.gradient_scale = kScale;
    args.counts = false;
    CrossEntropy(device(), args);
    const Values mine = logits.Read();
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < piece.width; ++i) {
        const double value = mine[r * piece.width + i];
        if (i < piece.columns) {
          got[r * n + piece.first + i] = value;
        } else {
          EXPECT_EQ(value, 0) << "padding of row " << r;
        }
      }
    }
  }
  EXPECT_LT(RelativeError(got, gradient), ErrorOf(whole.dtype));
}

TEST_P(CrossEntropyTest, LossAndGradient) {
  struct Sizes {
    int64_t rows, n;
  };
  for (const Sizes& s :
       {Sizes{1, 1}, Sizes{3, 17}, Sizes{17, 129}, Sizes{65, 5003}}) {
    for (const DType dtype : ActivationTypes()) {
      const double scale = 0.125;
      const Values logits = Random(dtype, s.rows * s.n, 5.0);
      Values targets = RandomInts(s.rows, 0, static_cast<int>(s.n) - 1);
      if (s.rows > 2) targets[1] = -1;
      Values gradient(logits.size()), losses(s.rows);
      double total = 10;
      for (int64_t r = 0; r < s.rows; ++r) {
        if (targets[r] < 0) continue;
        double sum = 0;
        for (int64_t i = 0; i < s.n; ++i) sum += std::exp(logits[r * s.n + i]);
        const auto target = static_cast<int64_t>(targets[r]);
        losses[r] = std::log(sum) - logits[r * s.n + target];
        total += losses[r];
        for (int64_t i = 0; i < s.n; ++i) {
          gradient[r * s.n + i] =
              (std::exp(logits[r * s.n + i]) / sum - (i == target)) * scale;
        }
      }
      const TestTensor tl(device(), {s.rows, s.n}, logits, dtype);
      const TestTensor tt(device(), {s.rows}, targets, DType::kI32);
      const TestTensor loss(device(), {1}, {10}, DType::kF64);
      const TestTensor count(device(), {1}, {5}, DType::kF64);
      const TestTensor row_losses(device(), DType::kF32, {s.rows});
      CrossEntropy(device(), {.logits = tl,
                              .targets = tt,
                              .loss_sum = loss,
                              .count = count,
                              .losses = row_losses});
      EXPECT_NEAR(loss.Read()[0], total, 1e-6 * total);
      EXPECT_EQ(count.Read()[0], 5 + s.rows - (s.rows > 2 ? 1 : 0));
      EXPECT_LT(RelativeError(row_losses.Read(), losses), kF32Error) << s.n;
      EXPECT_EQ(tl.Read(), logits);
      CrossEntropy(device(), {.logits = tl,
                              .targets = tt,
                              .loss_sum = loss,
                              .gradient = true,
                              .gradient_scale = static_cast<float>(scale)});
      EXPECT_LT(RelativeError(tl.Read(), gradient), ErrorOf(dtype)) << s.n;
    }
  }
}

// Rows of whole sequences and of parts of them: the sums of each are those of
// its rows' losses, and a row that does not count adds nothing.
TEST_P(CrossEntropyTest, SumsOfSequences) {
  constexpr int64_t kColumns = 19;
  struct Case {
    int64_t rows;
    TokenRows sequences;
  };
  for (const Case& c :
       {Case{12, {.first = 0, .tokens = 4}}, Case{1, {.first = 7, .tokens = 4}},
        Case{9, {.first = 3, .tokens = 4}}, Case{7, {.first = 8, .tokens = 1}},
        Case{2100, {.first = 5, .tokens = 1000}}, Case{5, {}}}) {
    SCOPED_TRACE(testing::Message()
                 << c.rows << " rows from " << c.sequences.first << " of "
                 << c.sequences.tokens);
    Values targets = RandomInts(c.rows, 0, kColumns - 1);
    for (int64_t r = 0; r < c.rows; r += 3) targets[r] = -1;
    const int64_t count = c.sequences.Of(c.rows - 1) - c.sequences.Of(0) + 1;
    const TestTensor logits(device(), {c.rows, kColumns},
                            Random(c.rows * kColumns, 5.0));
    const TestTensor target(device(), {c.rows}, targets, DType::kI32);
    const TestTensor total(device(), {1}, {0}, DType::kF64);
    const TestTensor rows(device(), DType::kF32, {c.rows});
    const TestTensor losses(device(), {count}, Values(count, 100), DType::kF64);
    const TestTensor counts(device(), {count}, Values(count, 7), DType::kF64);
    CrossEntropyArgs args = {.logits = logits,
                             .targets = target,
                             .loss_sum = total,
                             .losses = rows,
                             .sequence_losses = losses,
                             .sequence_counts = counts,
                             .sequences = c.sequences};
    args.counts = false;
    CrossEntropy(device(), args);
    EXPECT_EQ(losses.Read(), Values(count, 100));
    EXPECT_EQ(counts.Read(), Values(count, 7));
    args.counts = true;
    CrossEntropy(device(), args);
    Values expected(count, 100), counted(count, 7);
    const Values row_losses = rows.Read();
    for (int64_t r = 0; r < c.rows; ++r) {
      if (targets[r] < 0) continue;
      const int64_t sequence = c.sequences.Of(r) - c.sequences.Of(0);
      expected[sequence] += row_losses[r];
      counted[sequence] += 1;
    }
    EXPECT_LT(RelativeError(losses.Read(), expected), kF32Error);
    EXPECT_EQ(counts.Read(), counted);
  }
}

TEST_P(CrossEntropyTest, LargeAndStridedLogits) {
  Values logits = Random(4 * 50);
  for (double& v : logits) v = static_cast<float>(v + 1e4);
  const TestTensor tl(device(), {4, 50}, logits);
  const TestTensor tt(device(), {2, 2}, {0, 39, 3, 7}, DType::kI32);
  const TestTensor loss(device(), {1}, {0}, DType::kF64);
  CrossEntropy(device(), {.logits = tl.tensor().Slice(1, 0, 40),
                          .targets = tt,
                          .loss_sum = loss,
                          .gradient = true});
  const Values got = tl.Read();
  EXPECT_GT(loss.Read()[0], 0);
  for (int r = 0; r < 4; ++r) {
    double sum = 0;
    for (int i = 0; i < 40; ++i) sum += got[r * 50 + i];
    EXPECT_NEAR(sum, 0, 1e-5);
    for (int i = 40; i < 50; ++i)
      EXPECT_EQ(got[r * 50 + i], logits[r * 50 + i]);
  }
}

TEST_P(CrossEntropyTest, AVocabularyCutOverRanks) {
  for (const int64_t n : {11, 129, 2503}) {
    for (const DType dtype : ActivationTypes()) {
      Whole whole = {dtype, 9, n, Random(dtype, 9 * n, 5.0),
                     RandomInts(9, 0, static_cast<int>(n) - 1)};
      whole.targets[1] = -1;
      whole.targets[2] = 0;
      whole.targets[3] = static_cast<double>(n - 1);
      for (const int count : {1, 2, 3, 4, 8}) {
        SCOPED_TRACE(testing::Message() << n << " in " << count);
        ExpectAsTheWhole(whole, Cut(n, count));
      }
    }
  }
}

// Where one rank has the largest by far, and where all logits are huge.
TEST_P(CrossEntropyTest, HugeLogitsCutOverRanks) {
  constexpr int64_t kRows = 4, kColumns = 50;
  for (const DType dtype : ActivationTypes()) {
    Values logits = Random(kRows * kColumns);
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      const int64_t row = i / kColumns, column = i % kColumns;
      if (row == 0) logits[i] += 1e4;
      if (row == 1) logits[i] -= 1e4;
      if (row == 2) logits[i] += column < 20 ? 1e4 : -1e4;
      if (row == 3 && column == 49) logits[i] = 1e4;
    }
    const Whole whole = {
        dtype, kRows, kColumns, AsStored(dtype, logits), {3, 40, 45, 49}};
    for (const int count : {1, 2, 3, 8}) {
      SCOPED_TRACE(count);
      ExpectAsTheWhole(whole, Cut(kColumns, count));
    }
  }
}

// A part is the same from a dense tensor and from columns of a wider one that
// begin anywhere; of no columns it is that of nothing.
TEST_P(CrossEntropyTest, PartsDependOnTheirColumnsAlone) {
  constexpr int64_t kRows = 5, kColumns = 203, kFirst = 7, kMine = 101;
  for (const DType dtype : ActivationTypes()) {
    const Whole whole = {dtype,
                         kRows,
                         kColumns,
                         Random(dtype, kRows * kColumns, 5.0),
                         {-1, 6, 7, 107, 108}};
    const Values parts =
        PartsOf(whole, {{kFirst, kMine, kMine}, {kFirst, 0, 4}});
    const TestTensor logits(device(), {kRows, kColumns}, whole.logits, dtype);
    const TestTensor targets(device(), {kRows}, whole.targets, DType::kI32);
    const TestTensor strided(device(), DType::kF32, {kRows, 3});
    CrossEntropyParts(
        device(), {.logits = logits.tensor().Slice(1, kFirst, kFirst + kMine),
                   .targets = targets,
                   .parts = strided,
                   .first_column = kFirst,
                   .vocabulary = kColumns});
    const Values got = strided.Read();
    EXPECT_EQ(got, Values(parts.begin(), parts.begin() + kRows * 3));
    for (int64_t r = 0; r < kRows; ++r) {
      const double* row = &whole.logits[r * kColumns];
      const double* mine = row + kFirst;
      const double largest = *std::max_element(mine, mine + kMine);
      double sum = 0;
      for (int64_t i = 0; i < kMine; ++i) sum += std::exp(mine[i] - largest);
      const bool here = r == 2 || r == 3;
      EXPECT_EQ(got[r * 3], largest);
      EXPECT_NEAR(got[r * 3 + 1], sum, kF32Error * sum);
      EXPECT_EQ(got[r * 3 + 2],
                here ? row[static_cast<int64_t>(whole.targets[r])] : 0);
      const double* none = &parts[(kRows + r) * 3];
      EXPECT_EQ(Values(none, none + 3), (Values{-INFINITY, 0, 0}));
    }
  }
}

TEST_P(CrossEntropyTest, RefusesTargetsOutsideTheVocabulary) {
  const TestTensor logits(device(), {1, 4}, Random(4));
  const TestTensor targets(device(), {1}, {9}, DType::kI32);
  const TestTensor parts(device(), DType::kF32, {1, 3});
  const CrossEntropyPartsArgs args = {.logits = logits,
                                      .targets = targets,
                                      .parts = parts,
                                      .first_column = 5,
                                      .vocabulary = 9};
  if (device().kind() == DeviceKind::kCpu) {
    EXPECT_DEATH(CrossEntropyParts(device(), args), "target 9 of 9");
    return;
  }
  CrossEntropyParts(device(), args);
  EXPECT_FALSE(device().Synchronize().ok());
}

TEST_P(CrossEntropyTest, NotANumberShows) {
  const TestTensor tl(device(), {1, 20}, Values(20, NAN));
  const TestTensor tt(device(), {1}, {3}, DType::kI32);
  const TestTensor loss(device(), {1}, {0}, DType::kF64);
  CrossEntropy(device(), {.logits = tl, .targets = tt, .loss_sum = loss});
  EXPECT_TRUE(std::isnan(loss.Read()[0]));
}

TROUPE_ON_EACH_DEVICE(CrossEntropyTest);

}  // namespace
}  // namespace troupe
