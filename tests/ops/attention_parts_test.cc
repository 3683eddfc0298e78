// Attention whose keys come in parts, as ops/attention.h has it: however the
// sequence is cut, and in whatever order the parts come, the results are those
// of the whole.
#include <limits>
#include <memory>
#include <numeric>

#include "ops/attention.h"
#include "tests/ops/attention_reference.h"
#include "tests/ops/devices.h"
#include "tests/ops/island.h"
#include "tests/ops/random_documents.h"
#include "tests/ops/sequence_cuts.h"

namespace troupe {
namespace {

using Case = AttentionCase;
using Inputs = AttentionInputs;
using Results = AttentionResults;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Some rows of a [batch, length, columns], and back.
Values Gather(const Values& whole, const Rows& rows, int64_t length,
              int64_t columns) {
  Values part;
  for (size_t begin = 0; begin < whole.size(); begin += length * columns) {
    for (int64_t row = 0; row < rows.count; ++row) {
      const auto from =
          whole.begin() + begin + PositionOf(rows.at, row) * columns;
      part.insert(part.end(), from, from + columns);
    }
  }
  return part;
}

void Scatter(const Values& part, const Rows& rows, int64_t length,
             int64_t columns, Values* whole) {
  auto from = part.begin();
  for (size_t begin = 0; begin < whole->size(); begin += length * columns) {
    for (int64_t row = 0; row < rows.count; ++row, from += columns) {
      std::copy(from, from + columns,
                whole->begin() + begin + PositionOf(rows.at, row) * columns);
    }
  }
}

// The queries of one rank.
struct Queries {
  Rows rows;
  Island q, d_o, o, dq;
  Island o_sum, o_sum_again, dq_sum;  // f32
  TestTensor logsumexp;
  std::vector<int> order;  // in which it meets the parts of the keys
};

// A part of the keys.
struct Keys {
  Rows rows;
  Island k, v, dk, dv;
  Island dk_sum, dv_sum;  // f32
};

// A case of attention whose queries and keys are cut, each in their own way.
class Parts {
 public:
  Parts(Device& device, const Case& c, const Inputs& in, DType dtype,
        const Cut& queries, const Cut& keys)
      : device_(device),
        c_(c),
        documents_(
            device, {c.batch, c.q_length},
            c.documents.empty() ? Values(c.batch * c.q_length) : c.documents,
            DType::kI32) {
    for (const Rows& rows : queries) AddQueries(in, dtype, rows);
    for (const Rows& rows : keys) AddKeys(in, dtype, rows);
    for (auto& q : queries_) {
      q->order.resize(keys_.size());
      std::iota(q->order.begin(), q->order.end(), 0);
    }
  }

  Queries& queries(int i) { return *queries_[i]; }
  Keys& keys(int i) { return *keys_[i]; }

  // Each rank begins with its own keys and goes on as they come round the ring.
  void OrderByRing() {
    const int ranks = static_cast<int>(queries_.size());
    for (int r = 0; r < ranks; ++r) {
      for (int hop = 0; hop < ranks; ++hop) {
        queries_[r]->order[hop] = (r - hop + ranks) % ranks;
      }
    }
  }
  // Each call writes o elsewhere than it lay before.
  void Alternate() { alternate_ = true; }
  void Shuffle(std::mt19937& generator) {
    for (auto& q : queries_) {
      std::shuffle(q->order.begin(), q->order.end(), generator);
    }
  }

  void Forward(Queries& q, size_t i) {
    const bool last = i + 1 == q.order.size();
    const Keys& k = *keys_[q.order[i]];
    const bool odd = alternate_ && i % 2 == 1;
    const Tensor sum = odd ? q.o_sum_again : q.o_sum;
    const Tensor before = alternate_ && !odd ? q.o_sum_again : q.o_sum;
    Attention(device_, {.q = q.q,
                        .k = k.k,
                        .v = k.v,
                        .o = last ? q.o : sum,
                        .o_before = i == 0 ? Tensor() : before,
                        .logsumexp = q.logsumexp,
                        .heads = c_.heads,
                        .kv_heads = c_.kv_heads,
                        .scale = static_cast<float>(c_.scale()),
                        .part = PartOf(q, k),
                        .documents = Documents(),
                        .dropout = c_.dropout});
  }

  void Backward(Queries& q, size_t i) {
    const bool last = i + 1 == q.order.size();
    const Keys& k = *keys_[q.order[i]];
    const bool first_rank = &q == queries_.front().get();
    const bool last_rank = &q == queries_.back().get();
    AttentionBackward(device_, {.q = q.q,
                                .k = k.k,
                                .v = k.v,
                                .o = q.o,
                                .logsumexp = q.logsumexp,
                                .d_o = q.d_o,
                                .dq = last ? q.dq : q.dq_sum,
                                .dk = last_rank ? k.dk : k.dk_sum,
                                .dv = last_rank ? k.dv : k.dv_sum,
                                .dq_before = i == 0 ? Tensor() : q.dq_sum,
                                .dk_before = first_rank ? Tensor() : k.dk_sum,
                                .dv_before = first_rank ? Tensor() : k.dv_sum,
                                .heads = c_.heads,
                                .kv_heads = c_.kv_heads,
                                .scale = static_cast<float>(c_.scale()),
                                .part = PartOf(q, k),
                                .documents = Documents(),
                                .dropout = c_.dropout});
  }

  Results Run() {
    Results all{Values(c_.o_elements()),
                Values(c_.batch * c_.heads * c_.q_length),
                Values(c_.q_elements()), Values(c_.k_elements()),
                Values(c_.v_elements())};
    const int64_t length = c_.q_length;
    for (auto& q : queries_) {
      for (size_t i = 0; i < q->order.size(); ++i) Forward(*q, i);
      for (size_t i = 0; i < q->order.size(); ++i) Backward(*q, i);
      Scatter(q->o.Read(), q->rows, length, c_.o_columns(), &all.o);
      Scatter(q->dq.Read(), q->rows, length, c_.q_columns(), &all.dq);
      Scatter(q->logsumexp.Read(), q->rows, length, 1, &all.logsumexp);
    }
    for (auto& k : keys_) {
      Scatter(k->dk.Read(), k->rows, length, c_.k_columns(), &all.dk);
      Scatter(k->dv.Read(), k->rows, length, c_.v_columns(), &all.dv);
    }
    return all;
  }

 private:
  AttentionPart PartOf(const Queries& q, const Keys& k) const {
    return {.length = c_.q_length, .queries = q.rows.at, .keys = k.rows.at};
  }

  Tensor Documents() const {
    return c_.documents.empty() ? Tensor() : documents_.tensor();
  }

  void AddQueries(const Inputs& in, DType dtype, const Rows& rows) {
    const auto island = [&](DType type, int64_t columns) {
      return Island(device_, type, c_.batch, rows.count, columns);
    };
    queries_.emplace_back(new Queries{
        rows,
        island(dtype, c_.q_columns()),
        island(dtype, c_.o_columns()),
        island(dtype, c_.o_columns()),
        island(dtype, c_.q_columns()),
        island(DType::kF32, c_.o_columns()),
        island(DType::kF32, c_.o_columns()),
        island(DType::kF32, c_.q_columns()),
        TestTensor(device_, DType::kF32, {c_.batch, c_.heads, rows.count}),
        {}});
    const auto write = [&](Island& to, const Values& from, int64_t columns) {
      to.Write(Gather(from, rows, c_.q_length, columns));
    };
    write(queries_.back()->q, in.q, c_.q_columns());
    write(queries_.back()->d_o, in.d_o, c_.o_columns());
  }

  void AddKeys(const Inputs& in, DType dtype, const Rows& rows) {
    const auto island = [&](DType type, int64_t columns) {
      return Island(device_, type, c_.batch, rows.count, columns);
    };
    const int64_t k = c_.k_columns(), v = c_.v_columns();
    keys_.emplace_back(new Keys{
        rows, island(dtype, k), island(dtype, v), island(dtype, k),
        island(dtype, v), island(DType::kF32, k), island(DType::kF32, v)});
    const auto write = [&](Island& to, const Values& from, int64_t columns) {
      to.Write(Gather(from, rows, c_.q_length, columns));
    };
    write(keys_.back()->k, in.k, k);
    write(keys_.back()->v, in.v, v);
  }

  Device& device_;
  const Case& c_;
  const TestTensor documents_;
  bool alternate_ = false;
  std::vector<std::unique_ptr<Queries>> queries_;
  std::vector<std::unique_ptr<Keys>> keys_;
};

class AttentionPartsTest : public OpTest {
 protected:
  Inputs RandomInputs(const Case& c, DType dtype, double scale = 1.5) {
    return {Random(dtype, c.q_elements(), scale),
            Random(dtype, c.k_elements(), scale), Random(dtype, c.v_elements()),
            Random(dtype, c.o_elements())};
  }
};

void ExpectClose(const Results& got, const Results& want, DType dtype) {
  const double gradient_error = AttentionGradientErrorOf(dtype);
  EXPECT_LT(RelativeError(got.o, want.o), ErrorOf(dtype));
  EXPECT_LT(RelativeError(got.logsumexp, want.logsumexp), kF32Error);
  EXPECT_LT(RelativeError(got.dq, want.dq), gradient_error);
  EXPECT_LT(RelativeError(got.dk, want.dk), gradient_error);
  EXPECT_LT(RelativeError(got.dv, want.dv), ErrorOf(dtype));
}

// That two ways to the same in f32 differ by little more than a rounding.
void ExpectSame(const Results& got, const Results& want) {
  constexpr double kError = 2e-6;
  EXPECT_LT(RelativeError(got.o, want.o), kError);
  EXPECT_LT(RelativeError(got.logsumexp, want.logsumexp), kError);
  EXPECT_LT(RelativeError(got.dq, want.dq), kError);
  EXPECT_LT(RelativeError(got.dk, want.dk), kError);
  EXPECT_LT(RelativeError(got.dv, want.dv), kError);
}

const AttentionDropout kDropout{
    .probability = 0.25f,
    .stream = {.seed = 3, .purpose = RandomPurpose::kDropout, .site = 4},
    .first_sample = 5,
    .first_head = 2,
    .total_heads = 9};

const Case kCases[] = {
    {1, 64, 64, 1, 1, 64},
    {2, 67, 67, 3, 1, 20, kDropout},
    {1, 300, 300, 4, 2, 17},
    {1, 512, 512, 2, 1, 32, kDropout},
    {2, 300, 300, 4, 2, 17, {}, 0, RandomDocuments(2, 300, 40)},
    {1, 512, 512, 2, 1, 32, kDropout, 0, RandomDocuments(1, 512, 300)},
};

TEST_P(AttentionPartsTest, RingsEqualTheWhole) {
  for (const DType dtype : ActivationTypes()) {
    for (const Case& c : kCases) {
      if (!c.documents.empty() && !TakesDocuments(device())) continue;
      const Inputs in = RandomInputs(c, dtype);
      const Results want = AttentionReference(c, in);
      const Cut one = PlainOrder(c.q_length, 1);
      const Results whole = Parts(device(), c, in, dtype, one, one).Run();
      for (const int ranks : {2, 3, 4, 8}) {
        for (const Cut& cut :
             {PlainOrder(c.q_length, ranks), ZigzagOrder(c.q_length, ranks)}) {
          SCOPED_TRACE(testing::Message() << c << ", " << DTypeName(dtype)
                                          << ", " << ranks << " ranks");
          Parts parts(device(), c, in, dtype, cut, cut);
          parts.OrderByRing();
          const Results got = parts.Run();
          ExpectClose(got, want, dtype);
          if (dtype == DType::kF32) ExpectSame(got, whole);
        }
      }
    }
  }
}

TEST_P(AttentionPartsTest, AnyCutInAnyOrderEqualsTheWhole) {
  std::mt19937 generator(11);
  const auto pick = [&](std::vector<int> from) {
    return from[generator() % from.size()];
  };
  for (int i = 0; i < 40; ++i) {
    const int64_t length = 1 + generator() % 260;
    const int kv_heads = pick({1, 2});
    Case c{pick({1, 2}),
           length,
           length,
           kv_heads * pick({1, 3}),
           kv_heads,
           pick({5, 8, 20, 33, 64, 72}),
           pick({0, 1}) == 0 ? AttentionDropout{} : kDropout,
           device().kind() == DeviceKind::kCpu ? pick({0, 7, 40}) : 0};
    if (i % 2 == 1 && TakesDocuments(device())) {
      c.documents = RandomDocuments(c.batch, length, pick({2, 30, 200}), i);
    }
    const DType dtype = ActivationTypes()[i % ActivationTypes().size()];
    SCOPED_TRACE(testing::Message() << c << ", " << DTypeName(dtype));
    const Inputs in = RandomInputs(c, dtype);
    Parts parts(device(), c, in, dtype, RandomCut(length, generator),
                RandomCut(length, generator));
    parts.Shuffle(generator);
    const Results want = AttentionReference(c, in);
    const Results got = parts.Run();
    if (length > 1) ExpectClose(got, want, dtype);
    EXPECT_LT(RelativeError(got.o, want.o), ErrorOf(dtype));
  }
}

// Positions that are said are those that are understood.
TEST_P(AttentionPartsTest, WholeIsOnePart) {
  const Case c{2, 70, 70, 4, 2, 24, kDropout};
  const Inputs in = RandomInputs(c, DType::kF32);
  const Cut one = PlainOrder(c.q_length, 1);
  const Results part = Parts(device(), c, in, DType::kF32, one, one).Run();
  const TestTensor q(device(), {c.batch, c.q_length, c.q_columns()}, in.q);
  const TestTensor k(device(), {c.batch, c.q_length, c.k_columns()}, in.k);
  const TestTensor v(device(), {c.batch, c.q_length, c.v_columns()}, in.v);
  const TestTensor o(device(), DType::kF32,
                     {c.batch, c.q_length, c.q_columns()});
  Attention(device(), {.q = q,
                       .k = k,
                       .v = v,
                       .o = o,
                       .heads = c.heads,
                       .kv_heads = c.kv_heads,
                       .scale = static_cast<float>(c.scale()),
                       .dropout = c.dropout});
  EXPECT_EQ(o.Read(), part.o);
}

// A result is rounded when the last part is there, not once for each of them.
TEST_P(AttentionPartsTest, ManyPartsAreRoundedOnce) {
  for (const DType dtype : ActivationTypes()) {
    const Case c{1, 384, 384, 1, 1, 32};
    const Inputs in = RandomInputs(c, dtype);
    Parts parts(device(), c, in, dtype, PlainOrder(c.q_length, 3),
                PlainOrder(c.q_length, 128));
    ExpectClose(parts.Run(), AttentionReference(c, in), dtype);
  }
}

// Beside queries that see some of a part are others that have seen nothing yet.
TEST_P(AttentionPartsTest, LateKeysFirst) {
  for (const DType dtype : ActivationTypes()) {
    const Case c{1, 90, 90, 2, 1, 24, kDropout};
    const Inputs in = RandomInputs(c, dtype);
    Parts parts(device(), c, in, dtype, PlainOrder(c.q_length, 1),
                PlainOrder(c.q_length, 9));
    std::vector<int>& order = parts.queries(0).order;
    std::reverse(order.begin(), order.end());
    parts.Alternate();
    ExpectClose(parts.Run(), AttentionReference(c, in), dtype);
  }
}

// A later part may be all that counts, or nothing.
TEST_P(AttentionPartsTest, LargeScores) {
  const Case c{1, 100, 100, 1, 1, 8};
  const Inputs in = RandomInputs(c, DType::kF32, 12);
  const Cut cut = ZigzagOrder(c.q_length, 4);
  Parts parts(device(), c, in, DType::kF32, cut, cut);
  parts.OrderByRing();
  EXPECT_LT(RelativeError(parts.Run().o, AttentionReference(c, in).o), 1e-4);
}

// Of keys that no query sees nothing is read, and what is there stays.
TEST_P(AttentionPartsTest, KeysThatNobodySees) {
  for (const DType dtype : ActivationTypes()) {
    const Case c{1, 160, 160, 2, 1, 20};
    const Inputs in = RandomInputs(c, dtype);
    const Cut cut = PlainOrder(c.q_length, 2);
    Parts parts(device(), c, in, dtype, cut, cut);
    Queries& early = parts.queries(0);
    parts.keys(1).k.Write(Values(80 * c.k_columns(), kNaN));
    parts.keys(1).v.Write(Values(80 * c.v_columns(), kNaN));

    early.order = {1, 0, 1, 1};
    parts.Forward(early, 0);
    EXPECT_EQ(early.o_sum.Read(), Values(80 * c.q_columns()));
    for (const double v : early.logsumexp.Read()) {
      EXPECT_EQ(v, -std::numeric_limits<double>::infinity());
    }
    parts.Forward(early, 1);
    const Values o = early.o_sum.Read();
    const Values logsumexp = early.logsumexp.Read();
    parts.Forward(early, 2);
    EXPECT_EQ(early.o_sum.Read(), o);
    parts.Forward(early, 3);
    EXPECT_EQ(early.o.Read(), AsStored(dtype, o));
    EXPECT_EQ(early.logsumexp.Read(), logsumexp);

    parts.Backward(early, 0);
    EXPECT_EQ(early.dq_sum.Read(), Values(80 * c.q_columns()));
    EXPECT_EQ(parts.keys(1).dk_sum.Read(), Values(80 * c.k_columns()));
    EXPECT_EQ(parts.keys(1).dv_sum.Read(), Values(80 * c.v_columns()));
    parts.Backward(early, 1);
    const Values dq = early.dq_sum.Read();
    parts.Backward(early, 3);
    EXPECT_EQ(early.dq.Read(), AsStored(dtype, dq));
  }
}

// Nothing is read of keys that all lie in documents before those of the
// queries, and what is there stays.
TEST_P(AttentionPartsTest, KeysOfOtherDocuments) {
  if (!TakesDocuments(device())) GTEST_SKIP() << "on GPUs";
  for (const DType dtype : ActivationTypes()) {
    Case c{1, 160, 160, 2, 1, 20};
    for (int64_t t = 0; t < 160; ++t) c.documents.push_back(t < 80 ? 0 : 80);
    const Inputs in = RandomInputs(c, dtype);
    const Cut cut = PlainOrder(c.q_length, 2);
    Parts parts(device(), c, in, dtype, cut, cut);
    Queries& late = parts.queries(1);
    parts.keys(0).k.Write(Values(80 * c.k_columns(), kNaN));
    parts.keys(0).v.Write(Values(80 * c.v_columns(), kNaN));
    late.order = {1, 0, 0};
    parts.Forward(late, 0);
    const Values o = late.o_sum.Read();
    const Values logsumexp = late.logsumexp.Read();
    parts.Forward(late, 1);
    EXPECT_EQ(late.o_sum.Read(), o);
    parts.Forward(late, 2);
    EXPECT_EQ(late.o.Read(), AsStored(dtype, o));
    EXPECT_EQ(late.logsumexp.Read(), logsumexp);
    parts.Backward(late, 0);
    const Values dq = late.dq_sum.Read();
    parts.Backward(late, 1);
    EXPECT_EQ(late.dq_sum.Read(), dq);
  }
}

TEST_P(AttentionPartsTest, PositionsThatCannotBe) {
  // A forked process cannot use a GPU that its parent has opened.
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const Case c{1, 8, 8, 1, 1, 4};
  const Inputs in = RandomInputs(c, DType::kF32);
  const Cut one = PlainOrder(c.q_length, 1);
  const auto run = [&](const SequenceRows& at) {
    Parts parts(device(), c, in, DType::kF32, one, one);
    parts.keys(0).rows.at = at;
    parts.Forward(parts.queries(0), 0);
  };
  EXPECT_DEATH(run({.first = 1}), "keys at positions \\[1, 9\\) of 8");
  EXPECT_DEATH(run({.first = -1}), "keys at positions \\[-1, 7\\) of 8");
  EXPECT_DEATH(run({.first = 0, .first_count = 4, .second = 3}),
               "keys at positions \\[0, 4\\) and \\[3, 7\\) of 8");
}

TROUPE_ON_EACH_DEVICE(AttentionPartsTest);

}  // namespace
}  // namespace troupe
