#include "worker/engine/program_scalars.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "storage/tier/allocator.h"

namespace troupe {
namespace {

constexpr int kSums = 7;

// A rank whose scalars lie in one slot of `copies` copies.
class Rank {
 public:
  explicit Rank(int copies) : arenas_(Budgets(), allocator_) {
    Role plan;
    Slot& slot = *plan.add_slots();
    slot.set_item("buffers");
    slot.set_tier(DEVICE);
    slot.set_bytes(64);
    slot.set_copies(copies);
    memory_.emplace(RankMemory::Create(plan, arenas_).value());
    for (int copy = 0; copy < copies; ++copy) {
      std::fill_n(Copy(copy), kSums, 10 + copy);
    }
  }

  double* Copy(int copy) {
    return reinterpret_cast<double*>(memory_->Copies(Buffer())[copy].memory());
  }
  // Copies that begin at zero, and the first of what is known after it.
  std::vector<int> Zeros(const Program& program, int64_t step) {
    ProgramScalars(program, *memory_, step).Begin(*device_);
    std::vector<int> zeros;
    const int copies = static_cast<int>(memory_->Copies(Buffer()).size());
    for (int copy = 0; copy < copies; ++copy) {
      // All of its sums, or none.
      const auto begun = std::count(Copy(copy), Copy(copy) + kSums, 0.0);
      EXPECT_TRUE(begun == 0 || begun == kSums) << begun;
      if (begun > 0) zeros.push_back(copy);
    }
    return zeros;
  }
  double Known(const Program& program, int64_t step) {
    std::vector<double> scalars(kSums);
    ProgramScalars(program, *memory_, step)
        .Read(*device_, absl::MakeSpan(scalars));
    return scalars[0];
  }

 private:
  static std::vector<TierBudget> Budgets() {
    TierBudget budget;
    budget.set_tier(DEVICE);
    budget.set_bytes(1 << 20);
    return {budget};
  }

  HostAllocator allocator_;
  const TierArenas arenas_;
  const std::unique_ptr<Device> device_ = NewCpuDevice({.threads = 1});
  absl::optional<RankMemory> memory_;
};

Program ProgramWith(const std::vector<int>& offsets,
                    Program::Kind kind = Program::TRAIN) {
  Program program;
  program.set_kind(kind);
  program.add_buffers()->set_kind(Buffer::BATCH);
  for (const int offset : offsets) {
    Buffer& buffer = *program.add_buffers();
    buffer.set_kind(Buffer::SCALARS);
    buffer.set_bytes(kSums * sizeof(double));
    buffer.set_copy_offset(offset);
  }
  return program;
}

TEST(ProgramScalars, OfMostPlansBeginAtZeroAndAreKnownAtTheEnd) {
  Rank rank(1);
  const Program program = ProgramWith({0});
  EXPECT_EQ(rank.Zeros(program, 7), std::vector<int>({0}));
  rank.Copy(0)[0] = 3;
  EXPECT_EQ(rank.Known(program, 7), 3);
}

TEST(ProgramScalars, OfAProgramWithoutAnyAreLeftAlone) {
  Rank rank(2);
  EXPECT_TRUE(rank.Zeros(ProgramWith({}), 7).empty());
  EXPECT_EQ(rank.Known(ProgramWith({}), 7), 0);
}

TEST(ProgramScalars, WithALagTheEarliestStepIsKnownWhileItsOwnBegins) {
  // Two steps lie between; also where a rank only takes part in the sums.
  for (const std::vector<int>& offsets :
       {std::vector<int>{0, -2}, std::vector<int>{-2}}) {
    Rank rank(3);
    const Program program = ProgramWith(offsets);
    EXPECT_EQ(rank.Zeros(program, 5), std::vector<int>({5 % 3}));
    EXPECT_EQ(rank.Known(program, 5), 10 + 3 % 3);
    // The next step's is known next, though it began before.
    EXPECT_EQ(rank.Known(program, 6), 10 + 4 % 3);
  }
}

TEST(ProgramScalars, AValidationUsesACopyThatNoStepNeeds) {
  Rank rank(3);
  const Program validate = ProgramWith({-2}, Program::VALIDATE);
  EXPECT_EQ(rank.Zeros(validate, 5), std::vector<int>({3 % 3}));
  EXPECT_EQ(rank.Known(validate, 5), 0);
}

TEST(ProgramScalars, AReportSumsWhatStepsHaveLeft) {
  Rank rank(3);
  const Program report = ProgramWith({-2}, Program::REPORT);
  EXPECT_TRUE(rank.Zeros(report, 6).empty());
  EXPECT_EQ(rank.Known(report, 6), 10 + 4 % 3);
}

// What is added ahead of a step stays until that is summed.
TEST(ProgramScalars, OfStepsThatAreAheadBeginBeforeAnythingIsAdded) {
  Rank rank(4);
  EXPECT_EQ(rank.Zeros(ProgramWith({1, 2}, Program::FILL), 4),
            std::vector<int>({5 % 4, 6 % 4}));
  std::fill_n(rank.Copy(5 % 4), kSums, 1);
  std::fill_n(rank.Copy(6 % 4), kSums, 1);
  const Program train = ProgramWith({2, 0, 1, -1});
  EXPECT_EQ(rank.Zeros(train, 5), std::vector<int>({7 % 4}));
  EXPECT_EQ(rank.Known(train, 6), 1);  // of step 5
}

// Where the optimizer is on the host, a step's sums are for a while there, too.
TEST(ProgramScalars, AreNotTheirCopiesInOtherTiers) {
  Rank rank(3);
  Program program = ProgramWith({0, -2});
  Buffer& copy = *program.add_buffers();
  copy.set_kind(Buffer::SCALARS);
  copy.set_bytes(kSums * sizeof(double));
  copy.set_copy(1);
  copy.set_tier(HOST);
  copy.set_slot(1);  // which this rank lacks
  EXPECT_EQ(rank.Zeros(program, 5), std::vector<int>({5 % 3}));
  EXPECT_EQ(rank.Known(program, 5), 10 + 3 % 3);
  Program plain = ProgramWith({0});
  *plain.add_buffers() = copy;
  EXPECT_EQ(rank.Zeros(plain, 6), std::vector<int>({6 % 3, 5 % 3}));
}

}  // namespace
}  // namespace troupe
