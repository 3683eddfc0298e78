#include "ops/embedding.h"

#include <utility>
#include <vector>

#include "tests/ops/devices.h"
#include "tests/ops/random_documents.h"

namespace troupe {
namespace {

class EmbeddingTest : public OpTest {};

constexpr int64_t kBatch = 3, kTime = 65, kN = 129, kVocabulary = 17;
constexpr int64_t kPositions = 80, kFirst = 9;

TEST_P(EmbeddingTest, ForwardAndBackward) {
  const Values tokens = RandomInts(kBatch * kTime, 0, kVocabulary - 1);
  for (const DType dtype : ActivationTypes()) {
    const Values wte = Random(dtype, kVocabulary * kN);
    const Values wpe = Random(dtype, kPositions * kN);
    const Values dy = Random(dtype, kBatch * kTime * kN);
    Values want(dy.size()), copied(dy.size()), want_dwte = wte, want_dwpe = wpe;
    for (int64_t row = 0; row < kBatch * kTime; ++row) {
      for (int64_t i = 0; i < kN; ++i) {
        const int64_t t = static_cast<int64_t>(tokens[row]) * kN + i;
        const int64_t p = (kFirst + row % kTime) * kN + i;
        want[row * kN + i] = wte[t] + wpe[p];
        copied[row * kN + i] = wte[t];
        want_dwte[t] += dy[row * kN + i];
        want_dwpe[p] += dy[row * kN + i];
      }
    }
    const TestTensor ttokens(device(), {kBatch, kTime}, tokens, DType::kI32);
    const TestTensor twte(device(), {kVocabulary, kN}, wte, dtype);
    const TestTensor twpe(device(), {kPositions, kN}, wpe, dtype);
    const TestTensor y(device(), dtype, {kBatch, kTime, kN});
    Embedding(device(), {.tokens = ttokens,
                         .wte = twte,
                         .wpe = twpe,
                         .y = y,
                         .first_position = kFirst});
    EXPECT_LT(RelativeError(y.Read(), want), ErrorOf(dtype, 1e-6));
    Embedding(device(), {.tokens = ttokens, .wte = twte, .y = y});
    EXPECT_EQ(y.Read(), copied);
    const TestTensor tdy(device(), {kBatch, kTime, kN}, dy, dtype);
    for (const DType of_gradient : GradientTypes(dtype)) {
      const TestTensor dwte(device(), {kVocabulary, kN}, wte, of_gradient);
      const TestTensor dwpe(device(), {kPositions, kN}, wpe, of_gradient);
      EmbeddingBackward(device(), {.tokens = ttokens,
                                   .dy = tdy,
                                   .dwte = dwte,
                                   .dwpe = dwpe,
                                   .first_position = kFirst});
      // However many rows are added: each element is rounded once.
      EXPECT_LT(RelativeError(dwte.Read(), want_dwte),
                ErrorOf(of_gradient, 1e-6));
      EXPECT_LT(RelativeError(dwpe.Read(), want_dwpe),
                ErrorOf(of_gradient, 1e-6));
    }
  }
}

TEST_P(EmbeddingTest, PositionsCountFromEachDocument) {
  if (!TakesDocuments(device())) GTEST_SKIP() << "on GPUs";
  const Values tokens = RandomInts(kBatch * kTime, 0, kVocabulary - 1);
  const Values documents = RandomDocuments(kBatch, kPositions, 30);
  for (const DType dtype : ActivationTypes()) {
    const Values wte = Random(dtype, kVocabulary * kN);
    const Values wpe = Random(dtype, kPositions * kN);
    const Values dy = Random(dtype, kBatch * kTime * kN);
    Values want(dy.size()), want_dwpe = wpe;
    for (int64_t row = 0; row < kBatch * kTime; ++row) {
      const int64_t at = kFirst + row % kTime;
      const auto begin =
          static_cast<int64_t>(documents[row / kTime * kPositions + at]);
      for (int64_t i = 0; i < kN; ++i) {
        want[row * kN + i] = wte[static_cast<int64_t>(tokens[row]) * kN + i] +
                             wpe[(at - begin) * kN + i];
        want_dwpe[(at - begin) * kN + i] += dy[row * kN + i];
      }
    }
    const TestTensor ttokens(device(), {kBatch, kTime}, tokens, DType::kI32);
    const TestTensor tdocuments(device(), {kBatch, kPositions}, documents,
                                DType::kI32);
    const TestTensor twte(device(), {kVocabulary, kN}, wte, dtype);
    const TestTensor twpe(device(), {kPositions, kN}, wpe, dtype);
    const TestTensor y(device(), dtype, {kBatch, kTime, kN});
    Embedding(device(), {.tokens = ttokens,
                         .wte = twte,
                         .wpe = twpe,
                         .y = y,
                         .first_position = kFirst,
                         .documents = tdocuments});
    EXPECT_LT(RelativeError(y.Read(), want), ErrorOf(dtype, 1e-6));
    const TestTensor tdy(device(), {kBatch, kTime, kN}, dy, dtype);
    for (const DType of_gradient : GradientTypes(dtype)) {
      const TestTensor dwpe(device(), {kPositions, kN}, wpe, of_gradient);
      EmbeddingBackward(device(), {.tokens = ttokens,
                                   .dy = tdy,
                                   .dwpe = dwpe,
                                   .first_position = kFirst,
                                   .documents = tdocuments});
      EXPECT_LT(RelativeError(dwpe.Read(), want_dwpe),
                ErrorOf(of_gradient, 1e-6));
    }
  }
}

// More rows than a block of threads has, tokens of one to three bytes, many of
// them met again: each is added up in the order of its rows. GPUs cut long
// runs, into the same pieces each time.
TEST_P(EmbeddingTest, AddsUpInTheOrderOfRows) {
  constexpr int64_t kRows = 900, kColumns = 3;
  for (const int64_t vocabulary : {200, 300, 70000}) {
    Values tokens = RandomInts(kRows, 0, static_cast<int>(vocabulary) - 1);
    for (int64_t row = 0; row < kRows; row += 3) {
      tokens[row] = vocabulary - 1 - row % 7;
    }
    const Values dy = Random(kRows * kColumns);
    Values want(vocabulary * kColumns);
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      double& sum = want[static_cast<int64_t>(tokens[i / kColumns]) * kColumns +
                         i % kColumns];
      sum = static_cast<float>(sum) + static_cast<float>(dy[i]);
    }
    const TestTensor ttokens(device(), {1, kRows}, tokens, DType::kI32);
    const TestTensor tdy(device(), {1, kRows, kColumns}, dy);
    const auto sums = [&] {
      const TestTensor dwte(device(), {vocabulary, kColumns},
                            Values(vocabulary * kColumns));
      EmbeddingBackward(device(), {.tokens = ttokens, .dy = tdy, .dwte = dwte});
      return dwte.Read();
    };
    if (device().kind() == DeviceKind::kCpu) {
      EXPECT_EQ(sums(), want) << vocabulary;
    } else {
      EXPECT_LT(RelativeError(sums(), want), 1e-6) << vocabulary;
      EXPECT_EQ(sums(), sums()) << vocabulary;
    }
  }
}

// Runs of a token of all lengths around 64, 128 and 192 rows, at all places
// among the sorted rows. Of small integers a sum is exact in any order.
TEST_P(EmbeddingTest, ARowOfTheTableGetsEachOfItsRowsOnce) {
  constexpr int64_t kColumns = 7;
  const int64_t kRows[] = {1,   62,  63, 64, 65, 66, 126, 127, 128, 129,
                           130, 191, 1,  1,  64, 64, 192, 193, 1000};
  std::vector<int64_t> tokens_in_order;
  int64_t vocabulary = 0;
  for (const int64_t rows : kRows) {
    tokens_in_order.insert(tokens_in_order.end(), rows, vocabulary++);
  }
  const int64_t count = static_cast<int64_t>(tokens_in_order.size());
  for (const int64_t step : {1, 5}) {  // as sorted, and not
    Values tokens(count);
    for (int64_t i = 0; i < count; ++i) {
      tokens[i] = static_cast<double>(tokens_in_order[i * step % count]);
    }
    const Values dy = RandomInts(count * kColumns, -9, 9);
    Values want(vocabulary * kColumns, 3);
    for (int64_t i = 0; i < count * kColumns; ++i) {
      want[static_cast<int64_t>(tokens[i / kColumns]) * kColumns +
           i % kColumns] += dy[i];
    }
    const TestTensor ttokens(device(), {1, count}, tokens, DType::kI32);
    for (const DType dtype : ActivationTypes()) {
      const TestTensor tdy(device(), {1, count, kColumns}, dy, dtype);
      for (const DType of_gradient : GradientTypes(dtype)) {
        const TestTensor dwte(device(), {vocabulary, kColumns},
                              Values(vocabulary * kColumns, 3), of_gradient);
        EmbeddingBackward(device(),
                          {.tokens = ttokens, .dy = tdy, .dwte = dwte});
        EXPECT_EQ(dwte.Read(), AsStored(of_gradient, want));
      }
    }
  }
}

// Tables cut by rows: each rank adds its own tokens only, the first adds the
// positions, and together they are the whole. The last has a row of padding.
TEST_P(EmbeddingTest, RowsOfTheTableAtEachOfThreeRanks) {
  const Values tokens = RandomInts(kBatch * kTime, 0, kVocabulary - 1);
  const TestTensor ttokens(device(), {kBatch, kTime}, tokens, DType::kI32);
  for (const DType dtype : ActivationTypes()) {
    const Values wpe = Random(dtype, kPositions * kN);
    const Values dy = Random(dtype, kBatch * kTime * kN);
    const TestTensor twpe(device(), {kPositions, kN}, wpe, dtype);
    const TestTensor tdy(device(), {kBatch, kTime, kN}, dy, dtype);
    for (const auto& [first, rows] :
         {std::pair<int64_t, int64_t>{0, 5}, {5, 1}, {6, 12}}) {
      const Values wte = Random(dtype, rows * kN);
      const Values before = Random(rows * kN);
      Values alone(dy.size()), with_positions(dy.size()), dwte = before;
      for (int64_t row = 0; row < kBatch * kTime; ++row) {
        const int64_t at = static_cast<int64_t>(tokens[row]) - first;
        for (int64_t i = 0; i < kN; ++i) {
          double& y = alone[row * kN + i];
          if (at >= 0 && at < rows) {
            y = wte[at * kN + i];
            dwte[at * kN + i] += dy[row * kN + i];
          }
          with_positions[row * kN + i] =
              y + wpe[(kFirst + row % kTime) * kN + i];
        }
      }
      const TestTensor twte(device(), {rows, kN}, wte, dtype);
      const TestTensor y(device(), {kBatch, kTime, kN}, dy, dtype);
      Embedding(device(), {.tokens = ttokens,
                           .wte = twte,
                           .y = y,
                           .first_token = first,
                           .vocabulary = kVocabulary});
      EXPECT_EQ(y.Read(), alone) << first;
      Embedding(device(), {.tokens = ttokens,
                           .wte = twte,
                           .wpe = twpe,
                           .y = y,
                           .first_position = kFirst,
                           .first_token = first,
                           .vocabulary = kVocabulary});
      EXPECT_EQ(y.Read(), AsStored(dtype, with_positions)) << first;
      const TestTensor tdwte(device(), {rows, kN}, before);
      EmbeddingBackward(device(), {.tokens = ttokens,
                                   .dy = tdy,
                                   .dwte = tdwte,
                                   .first_token = first,
                                   .vocabulary = kVocabulary});
      EXPECT_LT(RelativeError(tdwte.Read(), dwte), 1e-6) << first;
    }
  }
}

TEST_P(EmbeddingTest, RefusesTokensOutsideTheVocabulary) {
  const TestTensor tokens(device(), {1, 2}, {3, 5}, DType::kI32);
  const TestTensor wte(device(), {5, 4}, Random(20));
  const TestTensor y(device(), DType::kF32, {1, 2, 4});
  const char* const want = "token 5 at 1, vocabulary of 5";
  if (device().kind() == DeviceKind::kCpu) {
    EXPECT_DEATH(Embedding(device(), {.tokens = tokens, .wte = wte, .y = y}),
                 want);
    return;
  }
  // A kernel cannot end the program; the device fails, and stays so.
  Embedding(device(), {.tokens = tokens, .wte = wte, .y = y});
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = device().Synchronize();
    EXPECT_NE(status.message().find(want), std::string::npos) << status;
  }
}

TROUPE_ON_EACH_DEVICE(EmbeddingTest);

}  // namespace
}  // namespace troupe
