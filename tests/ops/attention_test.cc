#include "ops/attention.h"

#include "absl/types/span.h"
#include "tests/ops/attention_reference.h"
#include "tests/ops/devices.h"
#include "tests/ops/random_documents.h"

namespace troupe {
namespace {

using Case = AttentionCase;
using Inputs = AttentionInputs;
using Results = AttentionResults;

class AttentionTest : public OpTest {
 protected:
  void ExpectReference(absl::Span<const Case> cases);
};

Results RunBoth(Device& device, const Case& c, const Inputs& in, DType dtype) {
  const std::vector<int64_t> q_dims = {c.batch, c.q_length, c.q_columns()};
  const std::vector<int64_t> k_dims = {c.batch, c.kv_length, c.k_columns()};
  const std::vector<int64_t> v_dims = {c.batch, c.kv_length, c.v_columns()};
  const std::vector<int64_t> o_dims = {c.batch, c.q_length, c.o_columns()};
  const TestTensor q(device, q_dims, in.q, dtype);
  const TestTensor k(device, k_dims, in.k, dtype);
  const TestTensor v(device, v_dims, in.v, dtype);
  const TestTensor d_o(device, o_dims, in.d_o, dtype);
  const TestTensor o(device, dtype, o_dims);
  const TestTensor dq(device, dtype, q_dims);
  const TestTensor dk(device, dtype, k_dims);
  const TestTensor dv(device, dtype, v_dims);
  const TestTensor lse(device, DType::kF32, {c.batch, c.heads, c.q_length});
  const TestTensor documents(
      device, {c.batch, c.kv_length},
      c.documents.empty() ? Values(c.batch * c.kv_length) : c.documents,
      DType::kI32);
  const Tensor isolated = c.documents.empty() ? Tensor() : documents.tensor();
  Attention(device, {.q = q,
                     .k = k,
                     .v = v,
                     .o = o,
                     .logsumexp = lse,
                     .heads = c.heads,
                     .kv_heads = c.kv_heads,
                     .scale = static_cast<float>(c.scale()),
                     .documents = isolated,
                     .dropout = c.dropout});
  AttentionBackward(device, {.q = q,
                             .k = k,
                             .v = v,
                             .o = o,
                             .logsumexp = lse,
                             .d_o = d_o,
                             .dq = dq,
                             .dk = dk,
                             .dv = dv,
                             .heads = c.heads,
                             .kv_heads = c.kv_heads,
                             .scale = static_cast<float>(c.scale()),
                             .documents = isolated,
                             .dropout = c.dropout});
  return {o.Read(), lse.Read(), dq.Read(), dk.Read(), dv.Read()};
}

const AttentionDropout kDropout{
    .probability = 0.25f,
    .stream = {.seed = 3, .purpose = RandomPurpose::kDropout, .site = 4},
    .first_sample = 5,
    .first_head = 2,
    .total_heads = 7};

const Case kCases[] = {
    {1, 1, 1, 1, 1, 1},      {2, 3, 3, 2, 2, 5},
    {1, 65, 65, 2, 1, 64},   {2, 17, 17, 4, 2, 17},
    {1, 129, 129, 3, 3, 33}, {1, 200, 200, 1, 1, 65},
    {1, 1, 130, 2, 1, 16},   {2, 7, 71, 2, 2, 24},
    {1, 64, 128, 1, 1, 64},  {1, 300, 300, 3, 3, 20},
    {2, 40, 40, 8, 2, 32},   {1, 70, 70, 6, 2, 48},
    {1, 66, 66, 4, 1, 80},   {1, 33, 97, 2, 1, 128},
    {3, 1, 90, 6, 2, 64},    {2, 67, 67, 3, 1, 20, kDropout},
};

// As when text is generated: few queries, and keys by the hundreds, which a GPU
// cuts into parts.
const Case kFewQueries[] = {
    {1, 1, 700, 4, 2, 64},   {2, 1, 1025, 3, 3, 20}, {1, 1, 1100, 2, 1, 128},
    {1, 1, 530, 17, 1, 200}, {1, 5, 600, 2, 1, 72},  {1, 16, 527, 1, 1, 65},
};

void AttentionTest::ExpectReference(absl::Span<const Case> cases) {
  for (const DType dtype : ActivationTypes()) {
    for (const Case& c : cases) {
      const Inputs in{Random(dtype, c.q_elements(), 1.5),
                      Random(dtype, c.k_elements(), 1.5),
                      Random(dtype, c.v_elements()),
                      Random(dtype, c.o_elements())};
      const Results want = AttentionReference(c, in);
      const Results got = RunBoth(device(), c, in, dtype);
      EXPECT_LT(RelativeError(got.o, want.o), ErrorOf(dtype)) << c;
      EXPECT_LT(RelativeError(got.logsumexp, want.logsumexp), kF32Error) << c;
      if (c.kv_length > 1) {  // one key alone has no gradient but rounding
        EXPECT_LT(RelativeError(got.dq, want.dq),
                  AttentionGradientErrorOf(dtype))
            << c;
        EXPECT_LT(RelativeError(got.dk, want.dk),
                  AttentionGradientErrorOf(dtype))
            << c;
      }
      EXPECT_LT(RelativeError(got.dv, want.dv), ErrorOf(dtype)) << c;
      const Results again = RunBoth(device(), c, in, dtype);
      EXPECT_EQ(got.o, again.o);
      EXPECT_EQ(got.dq, again.dq);
      EXPECT_EQ(got.dk, again.dk);
    }
  }
}

TEST_P(AttentionTest, ForwardAndBackward) { ExpectReference(kCases); }
TEST_P(AttentionTest, FewQueriesAndManyKeys) { ExpectReference(kFewQueries); }
TEST_P(AttentionTest, DropoutOfTheLastQueries) {
  ExpectReference({{2, 9, 71, 2, 2, 16, kDropout}});
}

// Documents shorter than a block of keys, about as long, and over several; some
// end where a block does.
TEST_P(AttentionTest, WithinDocuments) {
  if (!TakesDocuments(device())) GTEST_SKIP() << "on GPUs";
  const auto documents = [](int64_t batch, int64_t length, int64_t longest) {
    return RandomDocuments(batch, length, longest);
  };
  Values blocks(256);
  for (int64_t t = 0; t < 256; ++t) blocks[t] = double(t / 64 * 64);
  ExpectReference({
      {1, 1, 1, 1, 1, 1, {}, 0, documents(1, 1, 1)},
      {2, 65, 65, 2, 1, 24, {}, 0, documents(2, 65, 3)},
      {3, 130, 130, 2, 2, 17, {}, 0, documents(3, 130, 20)},
      {2, 300, 300, 4, 2, 64, {}, 0, documents(2, 300, 90)},
      {1, 700, 700, 2, 1, 32, {}, 0, documents(1, 700, 400)},
      {1, 256, 256, 2, 1, 20, {}, 0, blocks},
      {2, 67, 67, 3, 1, 20, kDropout, 0, documents(2, 67, 30)},
      {2, 9, 71, 2, 2, 16, kDropout, 0, documents(2, 71, 12)},
      {1, 1, 700, 4, 2, 64, {}, 0, documents(1, 700, 300)},
      {1, 5, 600, 2, 1, 72, {}, 0, documents(1, 600, 90)},
  });
}

// Each token alone is its own value, and no score has a gradient.
TEST_P(AttentionTest, DocumentsOfOneToken) {
  if (!TakesDocuments(device())) GTEST_SKIP() << "on GPUs";
  Case c{2, 70, 70, 2, 2, 12};
  for (int64_t i = 0; i < c.batch * c.q_length; ++i) {
    c.documents.push_back(static_cast<double>(i % c.q_length));
  }
  const Inputs in{Random(c.q_elements()), Random(c.k_elements()),
                  Random(c.v_elements()), Random(c.o_elements())};
  const Results got = RunBoth(device(), c, in, DType::kF32);
  EXPECT_LT(RelativeError(got.o, in.v), kF32Error);
  EXPECT_LT(RelativeError(got.dv, in.d_o), kF32Error);
}

// The reference's backward is analytic; this holds it against its own forward.
TEST(AttentionReferenceTest, AgreesWithFiniteDifferences) {
  const Case c{1, 5, 7, 2, 1, 3, {}, 4};
  std::mt19937 generator(1);
  std::normal_distribution<double> normal;
  const auto random = [&](int64_t n) {
    Values values(n);
    for (double& v : values) v = normal(generator);
    return values;
  };
  Inputs in{random(c.q_elements()), random(c.k_elements()),
            random(c.v_elements()), random(c.o_elements())};
  const Results results = AttentionReference(c, in);
  const auto check = [&](Values* input, const Values& gradient) {
    for (size_t i = 0; i < input->size(); ++i) {
      const auto objective = [&](double step) {
        const double before = (*input)[i];
        (*input)[i] += step;
        const Values o = AttentionReference(c, in).o;
        (*input)[i] = before;
        double sum = 0;
        for (size_t e = 0; e < o.size(); ++e) sum += o[e] * in.d_o[e];
        return sum;
      };
      EXPECT_NEAR((objective(1e-5) - objective(-1e-5)) / 2e-5, gradient[i],
                  1e-7);
    }
  };
  check(&in.q, results.dq);
  check(&in.k, results.dk);
  check(&in.v, results.dv);
}

const Case kSliced{2, 70, 70, 2, 2, 12};

void SlicesAgree(Device& device, const Values& packed, const Values& d_o_values,
                 DType dtype) {
  const Case& c = kSliced;
  const int64_t width = c.q_columns();
  Inputs in{{}, {}, {}, d_o_values};
  for (size_t i = 0; i < packed.size(); ++i) {
    (i / width % 3 == 0   ? in.q
     : i / width % 3 == 1 ? in.k
                          : in.v)
        .push_back(packed[i]);
  }
  const Results want = RunBoth(device, c, in, dtype);
  const std::vector<int64_t> dims = {c.batch, c.q_length, 3 * width};
  const TestTensor qkv(device, dims, packed, dtype);
  const TestTensor gradient(device, dtype, dims);
  const TestTensor o(device, {c.batch, c.q_length, width}, want.o, dtype);
  const TestTensor d_o(device, {c.batch, c.q_length, width}, in.d_o, dtype);
  const TestTensor lse(device, {c.batch, c.heads, c.q_length}, want.logsumexp);
  const auto part = [&](const TestTensor& t, int i) {
    return t.tensor().Slice(2, i * width, (i + 1) * width);
  };
  AttentionBackward(device, {.q = part(qkv, 0),
                             .k = part(qkv, 1),
                             .v = part(qkv, 2),
                             .o = o,
                             .logsumexp = lse,
                             .d_o = d_o,
                             .dq = part(gradient, 0),
                             .dk = part(gradient, 1),
                             .dv = part(gradient, 2),
                             .heads = c.heads,
                             .kv_heads = c.kv_heads,
                             .scale = static_cast<float>(c.scale())});
  const Values got = gradient.Read();
  Values dq, dk, dv;
  for (size_t i = 0; i < got.size(); ++i) {
    (i / width % 3 == 0 ? dq : i / width % 3 == 1 ? dk : dv).push_back(got[i]);
  }
  EXPECT_EQ(dq, want.dq);
  EXPECT_EQ(dk, want.dk);
  EXPECT_EQ(dv, want.dv);
}

TEST_P(AttentionTest, SlicesOfOneTensor) {
  for (const DType dtype : ActivationTypes()) {
    SlicesAgree(device(), Random(dtype, 3 * kSliced.q_elements()),
                Random(dtype, kSliced.q_elements()), dtype);
  }
}

// Large scores must neither overflow nor lose the others.
TEST_P(AttentionTest, LargeScores) {
  const Case c{1, 100, 100, 1, 1, 8};
  const Inputs in{Random(c.q_elements(), 12), Random(c.k_elements(), 12),
                  Random(c.v_elements()), Random(c.o_elements())};
  EXPECT_LT(RelativeError(RunBoth(device(), c, in, DType::kF32).o,
                          AttentionReference(c, in).o),
            1e-4);
}

TROUPE_ON_DEVICES(AttentionTest, AttentionDevices());

// Heads of values may be narrower or wider than those of keys.
class AttentionOfWidthsTest : public AttentionTest {};

TEST_P(AttentionOfWidthsTest, ForwardAndBackward) {
  ExpectReference({
      {1, 1, 1, 1, 1, 1, {}, 3},
      {2, 65, 65, 2, 2, 24, {}, 16},
      {1, 70, 70, 4, 2, 17, {}, 33},
      {1, 129, 129, 3, 3, 192, {}, 128},
      {2, 67, 67, 3, 1, 20, kDropout, 37},
  });
}
// As when text is generated.
TEST_P(AttentionOfWidthsTest, FewQueriesAndManyKeys) {
  ExpectReference(
      {{1, 1, 700, 4, 2, 72, {}, 64}, {1, 5, 600, 2, 1, 20, {}, 65}});
}

// GPUs have no kernels for them (ops/attention.h).
TROUPE_ON_DEVICES(AttentionOfWidthsTest, CpuDevices());

}  // namespace
}  // namespace troupe
