#include "ops/permute.h"

#include <algorithm>
#include <numeric>

#include "tests/ops/devices.h"

namespace troupe {
namespace {

class PermuteTest : public OpTest {};

struct Sizes {
  int64_t n, k, e;
};
const Sizes kSizes[] = {{1, 1, 1}, {7, 3, 3},   {5, 2, 64},
                        {9, 1, 4}, {130, 8, 8}, {600, 2, 5}};

// The numbers of choices in the order of their experts.
Values Sorted(const Values& choices) {
  Values sources(choices.size());
  std::iota(sources.begin(), sources.end(), 0.0);
  std::stable_sort(sources.begin(), sources.end(), [&](double a, double b) {
    return choices[static_cast<size_t>(a)] < choices[static_cast<size_t>(b)];
  });
  return sources;
}

Values InverseOf(const Values& sources) {
  Values places(sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    places[static_cast<size_t>(sources[i])] = static_cast<double>(i);
  }
  return places;
}

TEST_P(PermuteTest, SortsChoicesAndKeepsTheirOrder) {
  for (const Sizes& s : kSizes) {
    std::vector<Values> all = {
        RandomInts(s.n * s.k, 0, static_cast<int>(s.e) - 1)};
    for (int64_t expert = 0; expert < s.e; expert += 3) {  // to one of them
      all.push_back(Values(s.n * s.k, static_cast<double>(expert)));
    }
    for (const Values& choices : all) {
      const TestTensor tchoices(device(), {s.n, s.k}, choices, DType::kI32);
      const TestTensor sources(device(), DType::kI32, {s.n * s.k});
      const TestTensor places(device(), DType::kI32, {s.n, s.k});
      const TestTensor offsets(device(), DType::kI32, {s.e + 1});
      SortChoices(device(), {.choices = tchoices,
                             .sources = sources,
                             .places = places,
                             .offsets = offsets});
      EXPECT_EQ(sources.Read(), Sorted(choices));
      EXPECT_EQ(places.Read(), InverseOf(Sorted(choices)));
      Values want;
      for (int64_t expert = 0; expert <= s.e; ++expert) {
        want.push_back(static_cast<double>(std::count_if(
            choices.begin(), choices.end(),
            [&](double c) { return c < static_cast<double>(expert); })));
      }
      EXPECT_EQ(offsets.Read(), want);
    }
  }
}

// Rows of a token and their sum, in f32 in the order of the choices, the
// residual last, rounded once.
TEST_P(PermuteTest, GathersAndSumsRows) {
  for (const DType dtype : ActivationTypes()) {
    for (const Sizes& s : kSizes) {
      for (const int64_t c : {1, 17, 130}) {
        const int64_t m = s.n * s.k;
        const Values sources =
            Sorted(RandomInts(m, 0, static_cast<int>(s.e) - 1));
        const Values places = InverseOf(sources);
        const Values x = Random(dtype, s.n * c), rows = Random(dtype, m * c);
        const Values residual = Random(dtype, s.n * c);
        Values want_rows(m * c), want_sums(s.n * c), want_residual(s.n * c);
        for (int64_t i = 0; i < m * c; ++i) {
          const auto token = static_cast<int64_t>(sources[i / c]) / s.k;
          want_rows[i] = x[token * c + i % c];
        }
        for (int64_t i = 0; i < s.n * c; ++i) {
          const auto at = [&](int64_t j) {
            const auto row = static_cast<int64_t>(places[i / c * s.k + j]);
            return static_cast<float>(rows[row * c + i % c]);
          };
          float sum = at(0);
          for (int64_t j = 1; j < s.k; ++j) sum += at(j);
          want_sums[i] = RoundedTo(dtype, sum);
          want_residual[i] =
              RoundedTo(dtype, sum + static_cast<float>(residual[i]));
        }
        const TestTensor tsources(device(), {m}, sources, DType::kI32);
        const TestTensor tplaces(device(), {s.n, s.k}, places, DType::kI32);
        const TestTensor tx(device(), {s.n, c}, x, dtype);
        const TestTensor trows(device(), {m, c}, rows, dtype);
        const TestTensor tresidual(device(), {s.n, c}, residual, dtype);
        const TestTensor gathered(device(), dtype, {m, c});
        const TestTensor sums(device(), dtype, {s.n, c});
        GatherRows(device(), {.x = tx,
                              .sources = tsources,
                              .choices = static_cast<int>(s.k),
                              .y = gathered});
        EXPECT_EQ(gathered.Read(), want_rows);
        SumRows(device(), {.x = trows, .places = tplaces, .y = sums});
        EXPECT_EQ(sums.Read(), want_sums);
        SumRows(device(), {.x = trows,
                           .places = tplaces,
                           .residual = tresidual,
                           .y = tresidual});
        EXPECT_EQ(tresidual.Read(), want_residual);
      }
    }
  }
}

// Some of the rows, as a round of a dispatch has them; and none.
TEST_P(PermuteTest, GathersAPartOfTheRows) {
  const int64_t n = 6, k = 2, c = 5;
  const Values sources = Sorted({1, 0, 2, 1, 0, 1, 2, 2, 1, 0, 0, 2});
  const Values x = Random(n * c);
  const TestTensor tx(device(), {n, c}, x);
  const TestTensor tsources(device(), {n * k}, sources, DType::kI32);
  const TestTensor y(device(), {3, c}, Values(3 * c, 7.0));
  GatherRows(device(), {.x = tx,
                        .sources = tsources.tensor().Slice(0, 4, 4),
                        .choices = k,
                        .y = y.tensor().Slice(0, 0, 0)});
  EXPECT_EQ(y.Read(), Values(3 * c, 7.0));
  GatherRows(device(), {.x = tx,
                        .sources = tsources.tensor().Slice(0, 4, 7),
                        .choices = k,
                        .y = y});
  const Values got = y.Read();
  for (int64_t i = 0; i < 3 * c; ++i) {
    const auto token = static_cast<int64_t>(sources[4 + i / c]) / k;
    EXPECT_EQ(got[i], x[token * c + i % c]);
  }
}

// One is the other's backward: (gather x) . y = x . (sum y).
TEST_P(PermuteTest, EachIsTheOthersTranspose) {
  const int64_t n = 50, k = 4, c = 33, m = n * k;
  const Values sources = Sorted(RandomInts(m, 0, 6));
  const Values x = Random(n * c), y = Random(m * c);
  const TestTensor tsources(device(), {m}, sources, DType::kI32);
  const TestTensor tplaces(device(), {n, k}, InverseOf(sources), DType::kI32);
  const TestTensor tx(device(), {n, c}, x), ty(device(), {m, c}, y);
  const TestTensor gathered(device(), DType::kF32, {m, c});
  const TestTensor sums(device(), DType::kF32, {n, c});
  GatherRows(device(),
             {.x = tx, .sources = tsources, .choices = k, .y = gathered});
  SumRows(device(), {.x = ty, .places = tplaces, .y = sums});
  const auto dot = [](const Values& a, const Values& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  EXPECT_NEAR(dot(gathered.Read(), y), dot(x, sums.Read()), 1e-3);
}

// A row that is not a number spoils the sums of its own token only.
TEST_P(PermuteTest, NotANumberStaysInItsToken) {
  const int64_t n = 4, k = 2, c = 3;
  Values rows(n * k * c, 1.0);
  rows[5 * c + 1] = NAN;
  const TestTensor trows(device(), {n * k, c}, rows);
  const TestTensor places(device(), {n, k}, {0, 4, 1, 5, 2, 6, 3, 7},
                          DType::kI32);
  const TestTensor y(device(), DType::kF32, {n, c});
  SumRows(device(), {.x = trows, .places = places, .y = y});
  const Values got = y.Read();
  for (int64_t i = 0; i < n * c; ++i) {
    if (i == 1 * c + 1) {
      EXPECT_TRUE(std::isnan(got[i]));
    } else {
      EXPECT_EQ(got[i], 2.0) << i;
    }
  }
}

TEST_P(PermuteTest, WrongShapesDie) {
  const TestTensor x(device(), {2, 3}, Random(6));
  const TestTensor y(device(), DType::kBF16, {4, 3});
  const TestTensor index(device(), {4}, Values(4, 0.0), DType::kI32);
  EXPECT_DEATH(
      GatherRows(device(), {.x = x, .sources = index, .choices = 2, .y = y}),
      "bf16\\[4, 3\\]");
  EXPECT_DEATH(SumRows(device(), {.x = x, .places = index, .y = x}),
               "i32\\[4\\]");
}

TEST_P(PermuteTest, ChoicesThatAreNoExpertsDie) {
  if (device().kind() != DeviceKind::kCpu) GTEST_SKIP() << "not looked at";
  const TestTensor choices(device(), {2, 1}, {0, 3}, DType::kI32);
  const TestTensor index(device(), DType::kI32, {2});
  const TestTensor offsets(device(), DType::kI32, {4});
  EXPECT_DEATH(SortChoices(device(), {.choices = choices,
                                      .sources = index,
                                      .places = index,
                                      .offsets = offsets}),
               "expert 3 at 1, of 3");
}

TROUPE_ON_EACH_DEVICE(PermuteTest);

}  // namespace
}  // namespace troupe
