// The contract of storage/engine/engine.h, run over every engine.
#include "storage/engine/engine.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/base/philox.h"
#include "storage/engine/in_memory_engine.h"
#include "storage/engine/io_uring_engine.h"
#include "storage/engine/thread_pool_engine.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

constexpr int kDepth = 4;

struct EngineRow {
  const char* name;
  // Null where this machine cannot run it.
  std::function<std::unique_ptr<IoEngine>()> make;
};

void PrintTo(const EngineRow& row, std::ostream* out) { *out << row.name; }

std::unique_ptr<IoEngine> MakeRingOrNull() {
  absl::StatusOr<std::unique_ptr<IoEngine>> engine = MakeIoUringEngine(kDepth);
  return engine.ok() ? *std::move(engine) : nullptr;
}

const EngineRow kEngines[] = {
    {"io_uring", &MakeRingOrNull},
    {"thread_pool", [] { return MakeThreadPoolEngine(kDepth); }},
    {"in_memory", [] { return std::make_unique<InMemoryEngine>(kDepth); }},
    {"in_memory_short_and_shuffled",
     [] {
       return std::make_unique<InMemoryEngine>(
           kDepth, InMemoryFaults{.operation_bytes_max = 1000,
                                  .errors = {{1, EINTR}, {3, EAGAIN}},
                                  .shuffle_seed = 7});
     }},
};

// Memory fit for O_DIRECT.
class AlignedBuffer {
 public:
  explicit AlignedBuffer(size_t bytes)
      : data_(static_cast<char*>(aligned_alloc(
            kIoAlignment, (bytes / kIoAlignment + 1) * kIoAlignment))) {}
  ~AlignedBuffer() { free(data_); }
  char* data() const { return data_; }

 private:
  char* data_;
};

void Fill(uint64_t seed, size_t bytes, char* out) {
  for (size_t i = 0; i < bytes; ++i) {
    out[i] = static_cast<char>(PhiloxUint32({.seed = seed}, i));
  }
}

class EngineContract : public ::testing::TestWithParam<EngineRow> {
 protected:
  void SetUp() override {
    engine_ = GetParam().make();
    if (engine_ == nullptr) GTEST_SKIP() << "not on this machine";
  }

  IoFile Open(const std::string& name, IoMode mode = IoMode::kCreate) {
    absl::StatusOr<IoFile> file = engine_->Open(dir_.File(name), mode);
    CHECK(file.ok()) << file.status().ToString();
    return *file;
  }

  // All that is in flight, by tag.
  std::map<uint64_t, absl::Status> Drain() {
    std::map<uint64_t, absl::Status> done;
    while (engine_->in_flight() > 0) {
      const auto polled = engine_->Poll(absl::InfiniteDuration());
      EXPECT_FALSE(polled.empty());
      for (const IoCompletion& completion : polled) {
        EXPECT_TRUE(done.emplace(completion.tag, completion.status).second);
      }
    }
    return done;
  }

  absl::Status RunOne(const IoRequest& request) {
    CHECK_OK(engine_->Submit(request));
    return Drain().at(request.tag);
  }

  TempDir dir_;
  std::unique_ptr<IoEngine> engine_;
};

TEST_P(EngineContract, ReadsWhatItWroteAtEveryAlignment) {
  const IoFile file = Open("data");
  constexpr size_t kBytes = 5 * kIoAlignment;
  AlignedBuffer out(kBytes), in(kBytes);
  uint64_t seed = 1;
  for (const size_t shift : {size_t{0}, size_t{1}, size_t{512}}) {
    for (const size_t offset : {size_t{0}, kIoAlignment, size_t{77}}) {
      for (const size_t bytes :
           {size_t{0}, size_t{1}, size_t{4095}, kIoAlignment, 2 * kIoAlignment,
            2 * kIoAlignment + 3}) {
        SCOPED_TRACE(testing::Message()
                     << shift << " " << offset << " " << bytes);
        Fill(++seed, bytes, out.data() + shift);
        EXPECT_TRUE(
            RunOne({IoKind::kWrite, file, offset, out.data() + shift, bytes, 1})
                .ok());
        memset(in.data(), 0, kBytes);
        EXPECT_TRUE(
            RunOne({IoKind::kRead, file, offset, in.data() + shift, bytes, 2})
                .ok());
        EXPECT_EQ(memcmp(out.data() + shift, in.data() + shift, bytes), 0);
      }
    }
  }
  EXPECT_TRUE(engine_->Sync(file).ok());
  EXPECT_TRUE(engine_->Close(file).ok());
}

TEST_P(EngineContract, KeepsTheOffsetsOfManyRequestsInFlight) {
  const IoFile file = Open("data");
  constexpr int kPieces = 64;
  constexpr size_t kBytes = kIoAlignment;
  AlignedBuffer out(kPieces * kBytes), in(kPieces * kBytes);
  Fill(3, kPieces * kBytes, out.data());
  for (const IoKind kind : {IoKind::kWrite, IoKind::kRead}) {
    char* data = kind == IoKind::kWrite ? out.data() : in.data();
    std::set<uint64_t> tags;
    for (int i = 0; i < kPieces; ++i) {
      while (engine_->in_flight() == engine_->depth()) {
        for (const auto& c : engine_->Poll(absl::InfiniteDuration())) {
          EXPECT_TRUE(c.status.ok()) << c.status.ToString();
          EXPECT_TRUE(tags.insert(c.tag).second);
        }
      }
      // Every other piece on its own, so neighbours are in flight together.
      const int piece = i * 37 % kPieces;
      ASSERT_TRUE(
          engine_
              ->Submit({kind, file, piece * kBytes, data + piece * kBytes,
                        kBytes, static_cast<uint64_t>(i)})
              .ok());
    }
    for (const auto& [tag, status] : Drain()) {
      EXPECT_TRUE(status.ok()) << status.ToString();
      EXPECT_TRUE(tags.insert(tag).second);
    }
    EXPECT_EQ(tags.size(), kPieces);
  }
  EXPECT_EQ(memcmp(out.data(), in.data(), kPieces * kBytes), 0);
  EXPECT_EQ(*engine_->Size(file), kPieces * kBytes);
}

TEST_P(EngineContract, RefusesMoreThanItsDepth) {
  const IoFile file = Open("data");
  char bytes[kDepth + 1] = {};
  for (int i = 0; i < kDepth; ++i) {
    ASSERT_TRUE(engine_
                    ->Submit({IoKind::kWrite, file, static_cast<uint64_t>(i),
                              bytes + i, 1, static_cast<uint64_t>(i)})
                    .ok());
  }
  EXPECT_EQ(engine_->in_flight(), kDepth);
  EXPECT_TRUE(Fails(
      engine_->Submit({IoKind::kWrite, file, kDepth, bytes + kDepth, 1, 9}),
      absl::StatusCode::kFailedPrecondition, {"4 requests in flight"}));
  EXPECT_EQ(Drain().size(), kDepth);
  EXPECT_EQ(engine_->in_flight(), 0);
}

TEST_P(EngineContract, TakesABatchWholeOrNotAtAll) {
  const IoFile file = Open("data");
  char bytes[kDepth + 1] = {'a', 'b', 'c', 'd', 'e'};
  std::vector<IoRequest> requests;
  for (uint64_t i = 0; i <= kDepth; ++i) {
    requests.push_back({IoKind::kWrite, file, i, bytes + i, 1, i});
  }
  EXPECT_TRUE(Fails(engine_->Submit(requests),
                    absl::StatusCode::kFailedPrecondition, {"no room for 5"}));
  EXPECT_EQ(engine_->in_flight(), 0);
  requests.pop_back();
  ASSERT_TRUE(engine_->Submit(requests).ok());
  EXPECT_EQ(engine_->in_flight(), kDepth);
  for (const auto& [tag, status] : Drain()) EXPECT_TRUE(status.ok()) << status;
  char read[kDepth];
  ASSERT_TRUE(RunOne({IoKind::kRead, file, 0, read, kDepth, 1}).ok());
  EXPECT_EQ(std::string(read, kDepth), "abcd");
}

// A spill file that is gone is not replaced by one that has no room.
TEST_P(EngineContract, MakesNoFileToGoPastThePageCache) {
  EXPECT_TRUE(Fails(
      engine_->Open(dir_.File("missing"), IoMode::kDirect).status(),
      absl::StatusCode::kNotFound, {dir_.File("missing"), "no such file"}));
  EXPECT_FALSE(std::filesystem::exists(dir_.File("missing")));
}

TEST_P(EngineContract, GoesPastThePageCacheOnly) {
  Open("direct");
  const absl::StatusOr<IoFile> file =
      engine_->Open(dir_.File("direct"), IoMode::kDirect);
  if (absl::IsInvalidArgument(file.status())) {
    EXPECT_TRUE(Fails(file.status(), absl::StatusCode::kInvalidArgument,
                      {dir_.File("direct"), "O_DIRECT"}));
    GTEST_SKIP() << file.status();
  }
  ASSERT_TRUE(file.ok()) << file.status();
  constexpr size_t kBytes = 3 * kIoAlignment;
  AlignedBuffer out(kBytes), in(kBytes);
  Fill(9, kBytes, out.data());
  ASSERT_TRUE(
      RunOne({IoKind::kWrite, *file, kIoAlignment, out.data(), kBytes, 1})
          .ok());
  ASSERT_TRUE(
      RunOne({IoKind::kRead, *file, kIoAlignment, in.data(), kBytes, 2}).ok());
  EXPECT_EQ(memcmp(out.data(), in.data(), kBytes), 0);
  EXPECT_EQ(*engine_->Size(*file), 4 * kIoAlignment);
  EXPECT_TRUE(Fails(
      RunOne({IoKind::kRead, *file, 4 * kIoAlignment, in.data(), kBytes, 3}),
      absl::StatusCode::kOutOfRange, {"at offset 16384"}));
  EXPECT_TRUE(engine_->Close(*file).ok());
}

TEST_P(EngineContract, MovesToAndFromMemoryThatItKnows) {
  const IoFile file = Open("data");
  constexpr size_t kBytes = 4 * kIoAlignment;
  AlignedBuffer known(kBytes), other(kBytes);
  const absl::Status registered =
      engine_->RegisterMemory(known.data(), 2 * kIoAlignment);
  // Where it may lock no memory, or the kernel is old, it says what to do.
  if (!registered.ok()) std::cout << registered << std::endl;
  // Inside of it, across its end, outside of it; and of a second part.
  engine_->RegisterMemory(known.data() + 3 * kIoAlignment, kIoAlignment)
      .IgnoreError();
  for (const size_t at : {0u, 1u, 2u, 3u}) {
    for (const size_t bytes : {kIoAlignment, kIoAlignment + 1}) {
      if (at * kIoAlignment + bytes > kBytes) continue;
      char* const data = known.data() + at * kIoAlignment;
      Fill(at, bytes, data);
      ASSERT_TRUE(
          RunOne({IoKind::kWrite, file, at * kIoAlignment, data, bytes, 1})
              .ok());
      memcpy(other.data(), data, bytes);
      memset(data, 0, bytes);
      ASSERT_TRUE(
          RunOne({IoKind::kRead, file, at * kIoAlignment, data, bytes, 2})
              .ok());
      EXPECT_EQ(memcmp(other.data(), data, bytes), 0) << at << " " << bytes;
    }
  }
  engine_->ForgetMemory(known.data());
  engine_->ForgetMemory(known.data());
  EXPECT_TRUE(
      RunOne({IoKind::kRead, file, 0, known.data(), kIoAlignment, 3}).ok());
  // What was forgotten may be registered anew, all of it and not as before.
  engine_->ForgetMemory(known.data() + 3 * kIoAlignment);
  EXPECT_EQ(engine_->RegisterMemory(known.data(), kBytes).code(),
            registered.code());
  EXPECT_TRUE(RunOne({IoKind::kRead, file, 0, known.data(), kBytes, 4}).ok());
}

TEST_P(EngineContract, WhatIsCancelledCompletesOnce) {
  const IoFile file = Open("data");
  constexpr size_t kBytes = size_t{1} << 20;
  AlignedBuffer data(kDepth * kBytes);
  Fill(2, kIoAlignment, data.data());
  for (int round = 0; round < 20; ++round) {
    for (uint64_t i = 0; i < kDepth; ++i) {
      ASSERT_TRUE(engine_
                      ->Submit({IoKind::kWrite, file, i * kBytes,
                                data.data() + i * kBytes, kBytes, i})
                      .ok());
    }
    engine_->Cancel();
    engine_->Cancel();
    const std::map<uint64_t, absl::Status> done = Drain();
    EXPECT_EQ(done.size(), kDepth);
    for (const auto& [tag, status] : done) {
      EXPECT_TRUE(status.ok() ||
                  Fails(status, absl::StatusCode::kCancelled,
                        {dir_.File("data"), "write of", "was cancelled"}))
          << status;
    }
  }
  engine_->Cancel();
  EXPECT_EQ(engine_->in_flight(), 0);
  EXPECT_TRUE(RunOne({IoKind::kWrite, file, 0, data.data(), kBytes, 1}).ok());
}

TEST_P(EngineContract, PollReturnsAtOnceWhenNothingIsInFlight) {
  EXPECT_TRUE(engine_->Poll(absl::InfiniteDuration()).empty());
}

TEST_P(EngineContract, ReadPastTheEndSaysWhere) {
  const IoFile file = Open("short");
  AlignedBuffer buffer(2 * kIoAlignment);
  ASSERT_TRUE(RunOne({IoKind::kWrite, file, 0, buffer.data(), 5000, 1}).ok());
  EXPECT_TRUE(Fails(
      RunOne({IoKind::kRead, file, 0, buffer.data(), 2 * kIoAlignment, 2}),
      absl::StatusCode::kOutOfRange,
      {dir_.File("short"), "at offset 5000", "ends 3192 bytes before"}));
  EXPECT_TRUE(Fails(RunOne({IoKind::kRead, file, 9000, buffer.data(), 1, 3}),
                    absl::StatusCode::kOutOfRange, {"at offset 9000"}));
  // And the last bytes themselves are within reach.
  EXPECT_TRUE(RunOne({IoKind::kRead, file, 4999, buffer.data(), 1, 4}).ok());
}

TEST_P(EngineContract, ModesDifferInWhatTheyKeep) {
  EXPECT_TRUE(Fails(engine_->Open(dir_.File("a"), IoMode::kRead).status(),
                    absl::StatusCode::kNotFound, {dir_.File("a"), "ENOENT"}));
  char text[] = "abc";
  IoFile file = Open("a", IoMode::kReadWrite);
  ASSERT_TRUE(RunOne({IoKind::kWrite, file, 0, text, 3, 1}).ok());
  ASSERT_TRUE(engine_->Close(file).ok());
  file = Open("a", IoMode::kReadWrite);
  EXPECT_EQ(*engine_->Size(file), 3u);
  ASSERT_TRUE(engine_->Close(file).ok());
  file = Open("a", IoMode::kCreate);
  EXPECT_EQ(*engine_->Size(file), 0u);
}

// For the engines whose files outlive them.
class DiskEngineContract : public EngineContract {};

TEST_P(DiskEngineContract, FinishesWhatIsInFlightWhenDestroyed) {
  const IoFile file = Open("data");
  AlignedBuffer buffer(kIoAlignment);
  Fill(5, kIoAlignment, buffer.data());
  ASSERT_TRUE(
      engine_->Submit({IoKind::kWrite, file, 0, buffer.data(), kIoAlignment, 1})
          .ok());
  engine_.reset();
  EXPECT_EQ(ReadText(dir_.File("data")),
            std::string(buffer.data(), kIoAlignment));
}

TEST_P(EngineContract, FullDiskIsResourceExhausted) {
  IoFile file;
  if (engine_->name() == "in_memory") {
    static_cast<InMemoryEngine&>(*engine_).set_faults({.disk_bytes = 100});
    file = Open("data");
  } else {
    absl::StatusOr<IoFile> full =
        engine_->Open("/dev/full", IoMode::kReadWrite);
    ASSERT_TRUE(full.ok()) << full.status().ToString();
    file = *full;
  }
  std::string bytes(300, 'x');
  EXPECT_TRUE(Fails(RunOne({IoKind::kWrite, file, 0, bytes.data(), 300, 1}),
                    absl::StatusCode::kResourceExhausted,
                    {"ENOSPC", "the file system is full"}));
}

TEST_P(EngineContract, WritingAFileOpenForReadingFails) {
  Open("data");
  const IoFile file = Open("data", IoMode::kRead);
  char byte = 0;
  EXPECT_TRUE(Fails(RunOne({IoKind::kWrite, file, 0, &byte, 1, 1}),
                    absl::StatusCode::kInternal, {"EBADF", dir_.File("data")}));
}

std::string RowName(const ::testing::TestParamInfo<EngineRow>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Engines, EngineContract, ::testing::ValuesIn(kEngines),
                         &RowName);
INSTANTIATE_TEST_SUITE_P(Engines, DiskEngineContract,
                         ::testing::ValuesIn(kEngines, kEngines + 2), &RowName);

}  // namespace
}  // namespace troupe
