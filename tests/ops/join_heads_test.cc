#include "ops/join_heads.h"

#include <deque>

#include "tests/ops/devices.h"

namespace troupe {
namespace {

struct Case {
  int heads = 0;
  int kv_heads = 0;
  int64_t own = 0;     // columns of a key that are not shared
  int64_t shared = 0;  // and those that are
  int64_t values = 0;
  bool values_in_keys = false;
  bool interleaved = false;

  int64_t width() const { return own + shared; }
  int64_t q_columns() const { return heads * width(); }
  int64_t of_keys() const { return own + (values_in_keys ? values : 0); }
  int64_t k_columns() const { return kv_heads * of_keys(); }
  int64_t v_columns() const { return values_in_keys ? 0 : kv_heads * values; }
  int64_t y_columns() const {
    return (heads + kv_heads) * width() + kv_heads * values;
  }
};

const Case kCases[] = {
    {1, 1, 1, 0, 1},
    {3, 3, 5, 0, 7},
    {4, 2, 8, 0, 8},
    {3, 3, 5, 2, 7, true},
    {2, 2, 16, 8, 12, true, true},
    {6, 3, 3, 6, 4, false, true},
    {2, 1, 9, 2, 17, false, false},
};

constexpr int64_t kBatch = 2, kTime = 5, kRows = kBatch * kTime;

// Where column i of a row of y comes from: of which part, and which column.
struct Source {
  enum Part { kQ, kK, kV, kShared } part = kQ;
  int64_t column = 0;
};
Source SourceOf(const Case& c, int64_t i) {
  const auto turned = [&](int64_t at) {
    const int64_t half = c.shared / 2;
    if (!c.interleaved) return at;
    return at < half ? 2 * at : 2 * (at - half) + 1;
  };
  const int64_t head = i / c.width(), at = i % c.width();
  if (head < c.heads) {
    return {Source::kQ, head * c.width() + (at < c.shared ? c.own + turned(at)
                                                          : at - c.shared)};
  }
  const int64_t kv_head = head - c.heads;
  if (kv_head < c.kv_heads) {
    if (at < c.shared) return {Source::kShared, turned(at)};
    return {Source::kK, kv_head * c.of_keys() + at - c.shared};
  }
  const int64_t value = i - (c.heads + c.kv_heads) * c.width();
  if (!c.values_in_keys) return {Source::kV, value};
  return {Source::kK,
          value / c.values * c.of_keys() + c.own + value % c.values};
}

class JoinHeadsTest : public OpTest {
 protected:
  // Rows of a tensor that has three more columns, two in front.
  struct Strided {
    Strided(Device& device, DType dtype, int64_t columns, const Values& values)
        : columns(columns),
          memory(device, {kBatch, kTime, columns + 3},
                 Values(kRows * (columns + 3), 9), dtype) {
      if (values.empty()) return;
      Values all = memory.Read();
      for (int64_t i = 0; i < kRows * columns; ++i) all[At(i)] = values[i];
      memory.Write(all);
    }
    int64_t At(int64_t i) const {
      return i / columns * (columns + 3) + 2 + i % columns;
    }
    operator Tensor() const {
      return columns == 0 ? Tensor() : memory.tensor().Slice(2, 2, 2 + columns);
    }
    // Of nothing else is anything changed.
    Values Read() const {
      Values all = memory.Read();
      Values values(kRows * columns);
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = all[At(static_cast<int64_t>(i))];
        all[At(static_cast<int64_t>(i))] = 9;
      }
      EXPECT_EQ(all, Values(all.size(), 9)) << "beyond the columns";
      return values;
    }

    int64_t columns;
    TestTensor memory;
  };

  static JoinHeadsArgs ArgsOf(const Case& c) {
    return {.heads = c.heads,
            .kv_heads = c.kv_heads,
            .key_width = c.width(),
            .value_width = c.values,
            .shared_width = c.shared,
            .values_in_keys = c.values_in_keys,
            .interleaved = c.interleaved};
  }

  void Expect(const Case& c, DType dtype) {
    const int64_t columns[] = {c.q_columns(), c.k_columns(), c.v_columns(),
                               c.shared};
    std::vector<Values> parts;
    std::deque<Strided> places;
    for (const int64_t n : columns) {
      parts.push_back(Random(dtype, kRows * n));
      places.emplace_back(device(), dtype, n, parts.back());
    }
    const Strided y(device(), dtype, c.y_columns(), {});
    JoinHeadsArgs args = ArgsOf(c);
    args.q = places[0];
    args.k = places[1];
    args.v = places[2];
    args.shared = places[3];
    args.y = y;
    JoinHeads(device(), args);

    const Values dy = Random(dtype, kRows * c.y_columns());
    Values want(kRows * c.y_columns());
    std::vector<Values> gradients;
    for (const int64_t n : columns) gradients.emplace_back(kRows * n);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t i = 0; i < c.y_columns(); ++i) {
        const auto [part, column] = SourceOf(c, i);
        const int64_t from = row * columns[part] + column;
        want[row * c.y_columns() + i] = parts[part][from];
        gradients[part][from] += dy[row * c.y_columns() + i];
      }
    }
    EXPECT_EQ(y.Read(), want);
    ExpectGradients(c, dtype, dy, gradients);
  }

  void ExpectGradients(const Case& c, DType dtype, const Values& dy,
                       const std::vector<Values>& want) {
    std::deque<Strided> places;
    for (const Values& of : want) {
      places.emplace_back(device(), dtype,
                          static_cast<int64_t>(of.size()) / kRows, Values());
    }
    const Strided d_y(device(), dtype, c.y_columns(), dy);
    JoinHeadsArgs args = ArgsOf(c);
    args.y = d_y;
    JoinHeadsBackward(device(), args);  // of nothing
    args.q = places[0];
    args.k = places[1];
    args.v = places[2];
    args.shared = places[3];
    JoinHeadsBackward(device(), args);
    for (size_t i = 0; i < want.size(); ++i) {
      if (want[i].empty()) continue;
      const Values got = places[i].Read();
      if (i < 3) {
        EXPECT_EQ(got, want[i]) << "part " << i;
      } else {
        EXPECT_LT(RelativeError(got, want[i]), ErrorOf(dtype)) << "shared";
      }
    }
  }
};

TEST_P(JoinHeadsTest, PutsColumnsInTheirPlaces) {
  for (const DType dtype : ActivationTypes()) {
    for (const Case& c : kCases) {
      SCOPED_TRACE(testing::Message()
                   << DTypeName(dtype) << ", " << c.heads << " and "
                   << c.kv_heads << " heads of " << c.own << " + " << c.shared
                   << " and " << c.values);
      Expect(c, dtype);
    }
  }
}

TROUPE_ON_EACH_DEVICE(JoinHeadsTest);

}  // namespace
}  // namespace troupe
