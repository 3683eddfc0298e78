// Rows of tokens to the ranks with their experts and back, in rounds, on real
// ranks: each row comes to its expert, and what that makes of it, to its place.
#include "worker/instructions/exchange_rows.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "ops/regroup.h"
#include "tests/worker/collective/ranks.h"

namespace troupe {
namespace {

constexpr int64_t kColumns = 3;

// [ranks][experts].
using Counts = std::vector<std::vector<int>>;

std::vector<int32_t> OffsetsOf(const Counts& counts) {
  std::vector<int32_t> offsets;
  for (const std::vector<int>& of_rank : counts) {
    int32_t end = 0;
    offsets.push_back(end);
    for (const int count : of_rank) offsets.push_back(end += count);
  }
  return offsets;
}

float ValueOf(int rank, int64_t row, int64_t column) {
  return static_cast<float>(100'000 * rank + 10 * row + column + 1);
}

Tensor TensorOf(std::vector<float>& rows) {
  return Tensor(rows.data(), DType::kF32,
                {static_cast<int64_t>(rows.size()) / kColumns, kColumns});
}

CommBuffer BufferOf(std::vector<float>& rows) {
  return CommBuffer::Of(absl::MakeSpan(rows));
}

// Of one rank, all rounds. What experts do: expert e multiplies by e + 2.
class RankOfExperts {
 public:
  RankOfExperts(const Counts& counts, int64_t rows_max,
                Communicator& communicator)
      : offsets_(OffsetsOf(counts)),
        rows_max_(rows_max),
        communicator_(communicator),
        device_(NewCpuDevice({.threads = 1})) {
    int64_t most = 0;
    for (const std::vector<int>& of_rank : counts) {
      int64_t rows = 0;
      for (const int count : of_rank) rows += count;
      most = std::max(most, rows);
    }
    const int rank = communicator.rank();
    rows_.assign(most * kColumns, -7.0f);  // those beyond have no expert
    results_ = expected_ = rows_;
    int64_t row = 0;
    for (size_t expert = 0; expert < counts[rank].size(); ++expert) {
      for (int i = 0; i < counts[rank][expert]; ++i, ++row) {
        for (int64_t c = 0; c < kColumns; ++c) {
          const float value = ValueOf(rank, row, c);
          rows_[row * kColumns + c] = value;
          expected_[row * kColumns + c] =
              value * static_cast<float>(expert + 2);
        }
      }
    }
  }

  void Run(int64_t rounds) {
    for (int64_t round = 0; round < rounds; ++round) RunRound(round);
    EXPECT_EQ(results_, expected_);
  }

 private:
  int experts() const {
    return static_cast<int>(offsets_.size()) / communicator_.size() - 1;
  }
  int experts_of_rank() const { return experts() / communicator_.size(); }

  void Exchange(int64_t round, bool to_experts, std::vector<float>& from,
                std::vector<float>& to) {
    const absl::Status status = ExchangeRows({.offsets = offsets_,
                                              .ranks = communicator_.size(),
                                              .round = round,
                                              .columns = kColumns,
                                              .to_experts = to_experts,
                                              .from = BufferOf(from),
                                              .to = BufferOf(to)},
                                             communicator_, {.name = "rows"});
    ASSERT_TRUE(status.ok()) << status;
  }

  void RunRound(int64_t number) {
    std::vector<float> received(rows_max_ * kColumns, -3.0f);
    std::vector<float> grouped = received, back = received;
    std::vector<int32_t> own(experts_of_rank() + 1);
    const RoundOfRows round = {
        .offsets = Tensor(offsets_.data(), DType::kI32,
                          {communicator_.size(), experts() + 1}),
        .rank = communicator_.rank(),
        .number = number,
        .rows_max = rows_max_};
    Exchange(number, /*to_experts=*/true, rows_, received);
    Regroup(*device_,
            {.round = round, .x = TensorOf(received), .y = TensorOf(grouped)});
    OwnOffsets(*device_, {.round = round,
                          .own_offsets = Tensor(own.data(), DType::kI32,
                                                {experts_of_rank() + 1})});
    for (int expert = 0; expert < experts_of_rank(); ++expert) {
      const int global = communicator_.rank() * experts_of_rank() + expert;
      for (int64_t i = own[expert] * kColumns; i < own[expert + 1] * kColumns;
           ++i) {
        grouped[i] *= static_cast<float>(global + 2);
      }
    }
    Ungroup(*device_,
            {.round = round, .x = TensorOf(grouped), .y = TensorOf(back)});
    Exchange(number, /*to_experts=*/false, back, results_);
  }

  std::vector<int32_t> offsets_;
  const int64_t rows_max_;
  Communicator& communicator_;
  const std::unique_ptr<Device> device_;
  std::vector<float> rows_, results_, expected_;
};

void ExpectRoundTrip(const std::string& name, const Counts& counts) {
  const int ranks = static_cast<int>(counts.size());
  int64_t all = 0;
  for (const std::vector<int>& of_rank : counts) {
    for (const int count : of_rank) all += count;
  }
  for (const int64_t rows_max :
       {std::max<int64_t>(1, all), all / ranks + 1, int64_t{4}}) {
    SCOPED_TRACE(name + ", " + std::to_string(rows_max) + " rows a round");
    // As many as a plan needs for the worst routing, and one more.
    const int64_t rounds = all / rows_max + 2;
    for (const char* const backend : {"in_process", "shared_memory"}) {
      Together({.backend = backend, .ranks = ranks},
               [&](Communicator& communicator) {
                 RankOfExperts(counts, rows_max, communicator).Run(rounds);
               });
    }
  }
}

TEST(ExchangeRows, BringsAnyRoutingToItsExpertsAndBack) {
  const Counts none(3, std::vector<int>(6, 0));
  Counts one_expert = none, one_rank = none, one_source = none;
  for (int rank = 0; rank < 3; ++rank) {
    one_expert[rank][3] = 9;
    one_rank[rank][4] = 4;
    one_rank[rank][5] = 5;
  }
  for (int expert = 0; expert < 6; ++expert) one_source[1][expert] = 2;
  ExpectRoundTrip("no rows", none);
  ExpectRoundTrip("one expert", one_expert);
  ExpectRoundTrip("one rank", one_rank);
  ExpectRoundTrip("one source", one_source);
  ExpectRoundTrip("one rank alone", {{3, 0, 5}});
  std::mt19937 random(3);
  for (int i = 0; i < 8; ++i) {
    const int ranks = 2 + i % 3;
    Counts counts(ranks, std::vector<int>(2 * ranks, 0));
    for (std::vector<int>& of_rank : counts) {
      for (int& count : of_rank) {
        if (random() % 3 > 0) count = static_cast<int>(random() % 7);
      }
    }
    ExpectRoundTrip("case " + std::to_string(i), counts);
  }
}

TEST(ExchangeRows, CountTheBytesOfTheRowsForOthers) {
  const Counts counts = {{2, 1, 0, 4}, {3, 0, 5, 1}};
  Together({.backend = "in_process", .ranks = 2},
           [&](Communicator& communicator) {
             RankOfExperts(counts, 16, communicator).Run(1);
             ASSERT_TRUE(communicator.Barrier({}).ok());
             // Rank 0 sends 4 rows and sends 3 back; rank 1 the other way.
             EXPECT_EQ(communicator.sent_bytes(), 7 * kColumns * sizeof(float));
           });
}

TEST(ExchangeRows, RefuseATableThatIsNone) {
  Together({.backend = "in_process", .ranks = 2}, [&](Communicator& group) {
    std::vector<float> from(4 * kColumns), to(8 * kColumns);
    const auto exchange = [&](const std::vector<int32_t>& offsets, int ranks) {
      return std::string(ExchangeRows({.offsets = offsets,
                                       .ranks = ranks,
                                       .columns = kColumns,
                                       .from = BufferOf(from),
                                       .to = BufferOf(to)},
                                      group, {})
                             .message());
    };
    EXPECT_EQ(exchange({0, 2, 4, 0, 4, 3}, 2),
              "the offsets of the rows of rank 10 do not rise from 0 to at "
              "most 4, the rows that there are");
    EXPECT_EQ(exchange({0, 2, 5, 0, 1, 3}, 2),
              "the offsets of the rows of rank 7 do not rise from 0 to at "
              "most 4, the rows that there are");
    EXPECT_EQ(exchange({0, 2, 3, 4, 0, 1, 2, 3}, 2),
              "a table of 8 offsets is not of the experts of 2 ranks");
    EXPECT_EQ(exchange({0, 2, 3}, 1),
              "rows are exchanged between 1 ranks, but the group has 2");
    // Nobody has failed.
    EXPECT_TRUE(group.Barrier({}).ok());
  });
}

}  // namespace
}  // namespace troupe
