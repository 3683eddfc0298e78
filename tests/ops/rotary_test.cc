#include "ops/rotary.h"

#include "tests/ops/devices.h"
#include "tests/ops/random_documents.h"

namespace troupe {
namespace {

class RotaryTest : public OpTest {};

struct Sizes {
  int64_t batch, time;
  int heads;
  int64_t head_dim;
};
const Sizes kSizes[] = {
    {1, 1, 1, 2}, {2, 3, 3, 6}, {1, 17, 2, 64}, {3, 5, 7, 80}, {2, 65, 3, 34}};

Values Frequencies(int64_t head_dim) {
  Values frequencies;
  for (int64_t i = 0; i < head_dim; i += 2) {
    frequencies.push_back(std::pow(
        10000.0, -static_cast<double>(i) / static_cast<double>(head_dim)));
  }
  return frequencies;
}

// x of [batch, time, heads * head_dim] turned, pair by pair.
Values Turned(const Sizes& size, Values x, int64_t first_position,
              double scale) {
  const Values frequencies = Frequencies(size.head_dim);
  const int64_t half = size.head_dim / 2;
  for (int64_t row = 0; row < size.batch * size.time * size.heads; ++row) {
    const int64_t position = first_position + row / size.heads % size.time;
    for (int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<float>(position) * static_cast<float>(frequencies[i]);
      double& first = x[row * size.head_dim + i];
      double& second = x[row * size.head_dim + half + i];
      const double a = first, b = second;
      first = scale * (a * std::cos(angle) - b * std::sin(angle));
      second = scale * (b * std::cos(angle) + a * std::sin(angle));
    }
  }
  return x;
}

TEST_P(RotaryTest, TurnsEachPairByItsAngle) {
  for (const DType dtype : ActivationTypes()) {
    for (const Sizes& size : kSizes) {
      for (const int64_t first : {0, 7, 100000}) {
        const int64_t width = size.heads * size.head_dim;
        const Values x = Random(dtype, size.batch * size.time * width);
        const Values frequencies = Frequencies(size.head_dim);
        const TestTensor tx(device(), {size.batch, size.time, width}, x, dtype);
        Rotary(device(), {.x = tx,
                          .heads = size.heads,
                          .inverse_frequencies = frequencies.data(),
                          .scale = 1.25,
                          .first_position = first});
        EXPECT_LT(RelativeError(tx.Read(), Turned(size, x, first, 1.25)),
                  ErrorOf(dtype))
            << size.head_dim << " from " << first;
      }
    }
  }
}

TEST_P(RotaryTest, TheInverseTurnsBack) {
  const Sizes size = {2, 65, 3, 80};
  const Values frequencies = Frequencies(size.head_dim);
  for (const DType dtype : ActivationTypes()) {
    const Values x = Random(dtype, 2 * 65 * 240);
    const TestTensor tx(device(), {2, 65, 240}, x, dtype);
    for (const bool inverse : {false, true}) {
      Rotary(device(), {.x = tx,
                        .heads = size.heads,
                        .inverse_frequencies = frequencies.data(),
                        .first_position = 11,
                        .inverse = inverse});
      const double moved = RelativeError(tx.Read(), x);
      EXPECT_EQ(moved > 0.1, !inverse) << moved;
    }
    EXPECT_LT(RelativeError(tx.Read(), x), 2 * ErrorOf(dtype));
  }
}

// <dy, rotary(x)> = <inverse(dy), x>, which makes the inverse the backward.
TEST_P(RotaryTest, TheInverseIsTheTranspose) {
  const int64_t count = 3 * 5 * 128;
  const Values frequencies = Frequencies(64);
  const Values x = Random(count), dy = Random(count);
  const auto turned = [&](const Values& values, bool inverse) {
    const TestTensor t(device(), {3, 5, 128}, values);
    Rotary(device(), {.x = t,
                      .heads = 2,
                      .inverse_frequencies = frequencies.data(),
                      .scale = 0.75,
                      .first_position = 3,
                      .inverse = inverse});
    return t.Read();
  };
  const Values y = turned(x, false), dx = turned(dy, true);
  double forward = 0, backward = 0, size = 0;
  for (int64_t i = 0; i < count; ++i) {
    forward += dy[i] * y[i];
    backward += dx[i] * x[i];
    size += std::abs(dy[i] * y[i]);
  }
  EXPECT_NEAR(forward, backward, 1e-6 * size);
}

// Queries and keys of one tensor, with fewer kv heads; the values stay.
TEST_P(RotaryTest, ColumnSlicesOfOneTensor) {
  const int64_t batch = 2, time = 9, head_dim = 10, width = (4 + 2 + 2) * 10;
  const Values frequencies = Frequencies(head_dim);
  for (const DType dtype : ActivationTypes()) {
    const Values all = Random(dtype, batch * time * width);
    const auto turned = [&](std::vector<int64_t> cuts) {
      const TestTensor t(device(), {batch, time, width}, all, dtype);
      for (size_t i = 0; i + 1 < cuts.size(); ++i) {
        const int64_t columns = cuts[i + 1] - cuts[i];
        Rotary(device(), {.x = t.tensor().Slice(2, cuts[i], cuts[i + 1]),
                          .heads = static_cast<int>(columns / head_dim),
                          .inverse_frequencies = frequencies.data(),
                          .first_position = 5});
      }
      return t.Read();
    };
    const Values got = turned({0, 40, 60});
    EXPECT_EQ(got, turned({0, 60}));
    const Values want = Turned({batch, time, 8, head_dim}, all, 5, 1.0);
    Values difference;
    for (size_t i = 0; i < got.size(); ++i) {
      if (i % width >= 60) {
        EXPECT_EQ(got[i], all[i]) << i;
      } else {
        difference.push_back(got[i] - want[i]);
      }
    }
    EXPECT_LT(RelativeError(difference, Values(difference.size())),
              ErrorOf(dtype) * std::sqrt(static_cast<double>(got.size())));
  }
}

// The first columns of each head turn as if they were the head; the others
// stay.
TEST_P(RotaryTest, APartOfEachHead) {
  for (const DType dtype : ActivationTypes()) {
    for (const auto& [head_dim, turned] :
         {std::pair{64, 16}, {80, 32}, {9, 6}, {16, 16}}) {
      const int64_t heads = 3, time = 5, rows = 2 * time * heads;
      const Values frequencies = Frequencies(turned);
      const Values x = Random(dtype, rows * head_dim);
      Values part;
      for (int64_t i = 0; i < rows * head_dim; ++i) {
        if (i % head_dim < turned) part.push_back(x[i]);
      }
      part = Turned({2, time, heads, turned}, part, 3, 1.0);
      Values want = x;
      for (int64_t i = 0; i < rows * turned; ++i) {
        want[i / turned * head_dim + i % turned] = part[i];
      }
      const TestTensor tx(device(), {2, time, heads * head_dim}, x, dtype);
      Rotary(device(), {.x = tx,
                        .heads = heads,
                        .turned = turned,
                        .inverse_frequencies = frequencies.data(),
                        .first_position = 3});
      const Values got = tx.Read();
      EXPECT_LT(RelativeError(got, want), ErrorOf(dtype)) << head_dim;
      for (size_t i = 0; i < got.size(); ++i) {
        if (static_cast<int>(i % head_dim) < turned) continue;
        ASSERT_EQ(got[i], x[i]) << i;
      }
    }
  }
}

// The same as each document turned alone, wherever in a sequence it lies.
TEST_P(RotaryTest, PositionsCountFromEachDocument) {
  if (!TakesDocuments(device())) GTEST_SKIP() << "on GPUs";
  constexpr int64_t kBatch = 3, kTime = 40, kFirst = 5, kPositions = 50;
  const Values documents = RandomDocuments(kBatch, kPositions, 12);
  const Values frequencies = Frequencies(16);
  for (const DType dtype : ActivationTypes()) {
    const Values x = Random(dtype, kBatch * kTime * 48);
    const TestTensor all(device(), {kBatch, kTime, 48}, x, dtype);
    const TestTensor tdocuments(device(), {kBatch, kPositions}, documents,
                                DType::kI32);
    Rotary(device(), {.x = all,
                      .heads = 3,
                      .inverse_frequencies = frequencies.data(),
                      .first_position = kFirst,
                      .documents = tdocuments});
    const TestTensor one(device(), {kBatch, kTime, 48}, x, dtype);
    for (int64_t row = 0; row < kBatch * kTime; ++row) {
      const int64_t b = row / kTime, t = row % kTime;
      const auto begin =
          static_cast<int64_t>(documents[b * kPositions + kFirst + t]);
      Rotary(device(), {.x = one.tensor().Slice(0, b, b + 1).Slice(1, t, t + 1),
                        .heads = 3,
                        .inverse_frequencies = frequencies.data(),
                        .first_position = kFirst + t - begin});
    }
    EXPECT_EQ(all.Read(), one.Read());
  }
}

// Generation turns one position at a time, training all at once.
TEST_P(RotaryTest, PositionsOneByOneAreTheSame) {
  const Values frequencies = Frequencies(64);
  for (const DType dtype : ActivationTypes()) {
    const Values x = Random(dtype, 2 * 33 * 128);
    const auto turned = [&](int64_t step) {
      const TestTensor t(device(), {2, 33, 128}, x, dtype);
      for (int64_t begin = 0; begin < 33; begin += step) {
        Rotary(device(), {.x = t.tensor().Slice(1, begin, begin + step),
                          .heads = 2,
                          .inverse_frequencies = frequencies.data(),
                          .first_position = begin});
      }
      return t.Read();
    };
    EXPECT_EQ(turned(33), turned(1));
  }
}

TROUPE_ON_EACH_DEVICE(RotaryTest);

}  // namespace
}  // namespace troupe
