#include "worker/engine/text_generation.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "proto/base/status.h"
#include "storage/checkpoint/assets.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/manifest.h"
#include "storage/tier/allocator.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/text_plan_of.h"
#include "worker/engine/text_ranks.h"

namespace troupe {
namespace {

std::vector<TierBudget> Budget(int64_t bytes) {
  TierBudget budget;
  budget.set_tier(DEVICE);
  budget.set_bytes(bytes);
  return {budget};
}

class TextGeneration : public testing::Test {
 protected:
  void SetUp() override {
    JobSpec job = SmallJob();
    const std::string directory = testing::TempDir() + "/text_generation";
    std::filesystem::remove_all(directory);
    job.mutable_training()->set_steps(6);
    job.mutable_checkpoint()->set_directory(directory);
    ASSERT_TRUE(Train(job, {}).status().ok());
    const std::string checkpoint = CheckpointPath(directory, 6);
    request_ = {.checkpoint = checkpoint,
                .plan = TextPlanOf(checkpoint),
                .prompt = "0123",
                .max_new_tokens = 30,
                .sampling = {.temperature = 1.0, .top_k = 20, .seed = 4}};
  }

  absl::Status Continue(const TextRequest& request, std::string& text,
                        int64_t budget = 1 << 20) {
    const TierArenas arenas(Budget(budget), allocator_);
    const absl::Status status =
        ContinueText(request, *device_, arenas, [&](const TextPiece& piece) {
          text += piece.text;
          ids_.insert(ids_.end(), piece.ids.begin(), piece.ids.end());
          return absl::OkStatus();
        });
    EXPECT_EQ(arenas.used(), 0u);
    return status;
  }

  struct Rank {
    absl::Status status;
    std::string text;
    std::vector<int32_t> ids;
    int loaded = 0;  // how often it said so
  };
  struct RanksOptions {
    const char* backend = "in_process";
    int fails = -1;  // the rank that does, when it has its weights
  };
  // The request, with ranks as threads.
  std::vector<Rank> OverRanks(const TextCut& cut, const RanksOptions& options) {
    TextRequest request = request_;
    request.plan = TextPlanOf(request_.checkpoint, cut);
    for (Group& group : *request.plan.mutable_groups()) {
      group.mutable_carriers(0)->set_backend(options.backend);
    }
    InMemoryStore store;
    std::vector<Rank> ranks(cut.tensor * cut.pipeline);
    std::vector<std::thread> threads;
    for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
      threads.emplace_back([&, r] {
        TextRequest own = request;
        own.rank = r;
        ranks[r].status = RunRank(own, r == options.fails, store, ranks[r]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return ranks;
  }
  static absl::Status RunRank(const TextRequest& request, bool fails,
                              InMemoryStore& store, Rank& rank) {
    HostAllocator allocator;
    const TierArenas arenas(Budget(1 << 20), allocator);
    const std::unique_ptr<Device> device = NewCpuDevice({.threads = 1});
    JoinAbort abort;
    ASSIGN_OR_RETURN(const auto peers,
                     TextRanks::Join({.plan = request.plan,
                                      .rank = request.rank,
                                      .device = *device,
                                      .store = store,
                                      .abort = abort,
                                      .timeout = absl::Minutes(1)}));
    return ContinueText(
        request, *device, arenas,
        [&](const TextPiece& piece) {
          if (piece.loaded && fails) return absl::InternalError("bad luck");
          rank.text += piece.text;
          rank.ids.insert(rank.ids.end(), piece.ids.begin(), piece.ids.end());
          rank.loaded += piece.loaded;
          return absl::OkStatus();
        },
        peers.get());
  }

  // As a checkpoint of an imported model does.
  void CarryGenerationConfig(const std::string& text) const {
    const std::vector<CarriedFile> files = {{"generation_config.json", text}};
    ASSERT_TRUE(WriteCarriedFiles(request_.checkpoint, files).ok());
    auto manifest = ReadManifest(request_.checkpoint);
    ASSERT_TRUE(manifest.ok());
    manifest->tokenizer.clear();
    manifest->assets = DescribeCarriedFiles(files);
    std::ofstream(request_.checkpoint + "/manifest.json")
        << FormatManifest(*manifest);
  }

  HostAllocator allocator_;
  const std::unique_ptr<Device> device_ = NewCpuDevice({.threads = 1});
  TextRequest request_;
  std::vector<int32_t> ids_;  // drawn, of all requests
};

TEST_F(TextGeneration, IsAFunctionOfItsSeed) {
  std::string one;
  std::string again;
  std::string other;
  ASSERT_TRUE(Continue(request_, one).ok());
  ASSERT_TRUE(Continue(request_, again).ok());
  request_.sampling.seed = 5;
  ASSERT_TRUE(Continue(request_, other).ok());
  // Past the 20 positions of the model, too.
  EXPECT_EQ(one.size(), 30u);
  EXPECT_EQ(one, again);
  EXPECT_NE(one, other);
}

TEST_F(TextGeneration, IdsSayTheSameAsText) {
  std::string of_text;
  ASSERT_TRUE(Continue(request_, of_text).ok());
  const std::vector<int32_t> drawn = std::exchange(ids_, {});
  EXPECT_EQ(drawn.size(), 30u);
  TextRequest request = request_;
  request.prompt = "";
  request.prompt_ids = {'0', '1', '2', '3'};
  std::string of_ids;
  ASSERT_TRUE(Continue(request, of_ids).ok());
  EXPECT_EQ(ids_, drawn);
  EXPECT_EQ(of_ids, of_text);
}

// As a checkpoint of tokens that another program made.
TEST_F(TextGeneration, WithoutATokenizerIdsAreContinued) {
  auto manifest = ReadManifest(request_.checkpoint);
  ASSERT_TRUE(manifest.ok());
  for (const char* tokenizer : {"", "gpt2"}) {
    manifest->tokenizer = tokenizer;
    std::ofstream(request_.checkpoint + "/manifest.json")
        << FormatManifest(*manifest);
    std::string text;
    const absl::Status refused = Continue(request_, text);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_NE(refused.message().find("--prompt-ids"), std::string::npos);
    TextRequest request = request_;
    request.prompt_ids = {1, 2, 3};
    ids_.clear();
    const absl::Status continued = Continue(request, text);
    EXPECT_TRUE(continued.ok()) << continued;
    EXPECT_EQ(ids_.size(), 30u);
    EXPECT_EQ(text, "");
  }
}

// Whatever ranks held the model while it was trained.
TEST_F(TextGeneration, OfAPipelineIsOfTheWholeModel) {
  JobSpec job = SmallJob();
  const std::string directory = testing::TempDir() + "/of_a_pipeline";
  std::filesystem::remove_all(directory);
  job.mutable_training()->set_steps(6);
  job.mutable_training()->set_micro_batch_size(2);
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_parallelism()->set_pipeline(2);
  ASSERT_TRUE(Train(job, {.ranks = 2}).status().ok());
  std::string of_one_rank;
  ASSERT_TRUE(Continue(request_, of_one_rank).ok());
  TextRequest request = request_;
  request.checkpoint = CheckpointPath(directory, 6);
  std::string of_two;
  ASSERT_TRUE(Continue(request, of_two).ok());
  EXPECT_EQ(of_two, of_one_rank);
}

// From the checkpoint of a single rank: each takes its slices.
TEST_F(TextGeneration, RanksWithAPartEachWriteWhatOneWrites) {
  request_.sampling.temperature = 0;
  std::string of_one;
  ASSERT_TRUE(Continue(request_, of_one).ok());
  for (const auto& [cut, backend] :
       {std::pair(TextCut{.tensor = 3}, "in_process"),
        std::pair(TextCut{.pipeline = 2}, "shared_memory"),
        std::pair(TextCut{.tensor = 3, .pipeline = 2}, "gloo")}) {
    SCOPED_TRACE(backend);
    const std::vector<Rank> ranks = OverRanks(cut, {.backend = backend});
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      SCOPED_TRACE(rank);
      EXPECT_TRUE(ranks[rank].status.ok()) << ranks[rank].status;
      EXPECT_EQ(ranks[rank].ids, ids_);
      EXPECT_EQ(ranks[rank].text, rank == 0 ? of_one : "");
      EXPECT_EQ(ranks[rank].loaded, 1);
    }
  }
}

// Over several ranks, too. The tokens' tokenizer is not known, so the config
// that the model came with says what ends a text.
TEST_F(TextGeneration, EndsWithTheModelsEndOfText) {
  request_.prompt = "";
  request_.prompt_ids = {'0', '1', '2', '3'};
  std::string text;
  ASSERT_TRUE(Continue(request_, text).ok());
  const std::vector<int32_t> all = std::exchange(ids_, {});
  const int32_t end = all[10];
  const size_t count = std::find(all.begin(), all.end(), end) - all.begin() + 1;
  ASSERT_LT(count, all.size());
  const std::vector<int32_t> until_end(all.begin(), all.begin() + count);
  CarryGenerationConfig(absl::StrCat("{\"eos_token_id\": [60, ", end, "]}"));

  ASSERT_TRUE(Continue(request_, text).ok());
  EXPECT_EQ(ids_, until_end);
  for (const Rank& rank : OverRanks({.tensor = 3, .pipeline = 2}, {})) {
    EXPECT_TRUE(rank.status.ok()) << rank.status;
    EXPECT_EQ(rank.ids, until_end);
  }

  ids_.clear();
  request_.ignore_eos = true;
  ASSERT_TRUE(Continue(request_, text).ok());
  EXPECT_EQ(ids_, all);

  CarryGenerationConfig("{\"eos_token_id\": \"no id\"}");
  EXPECT_TRUE(Continue(request_, text).ok()) << "nobody asks for it";
  request_.ignore_eos = false;
  const absl::Status wrong = Continue(request_, text);
  EXPECT_TRUE(absl::IsInvalidArgument(wrong)) << wrong;
}

// The ranks that wait for one that fails do not wait long.
TEST_F(TextGeneration, ARankThatFailsEndsItForAll) {
  const std::vector<Rank> ranks =
      OverRanks({.tensor = 3, .pipeline = 2}, {.fails = 4});
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    SCOPED_TRACE(rank);
    if (rank == 4) {
      EXPECT_EQ(ranks[rank].status, absl::InternalError("bad luck"));
    } else {
      EXPECT_TRUE(absl::IsUnavailable(ranks[rank].status))
          << ranks[rank].status;
    }
  }
}

// What it says of its model is not so: nothing is written past the memory that
// this model has, and none of another's left-overs count as weights.
TEST_F(TextGeneration, OfTensorsOfAnotherShapeThereIsNone) {
  auto manifest = ReadManifest(request_.checkpoint);
  ASSERT_TRUE(manifest.ok());
  for (const char* hidden_size : {"12", "48"}) {
    Manifest other = *manifest;
    absl::StrReplaceAll(
        {{"\"hidden_size\":24", absl::StrCat("\"hidden_size\":", hidden_size)}},
        &other.job);
    ASSERT_NE(other.job, manifest->job);
    std::ofstream(request_.checkpoint + "/manifest.json")
        << FormatManifest(other);
    request_.plan = TextPlanOf(request_.checkpoint);
    std::string text;
    const absl::Status status = Continue(request_, text);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(status.message().find("] there, asked for as ["),
              std::string::npos)
        << status;
  }
}

TEST_F(TextGeneration, SaysWhatIsWrong) {
  std::string text;
  TextRequest request = request_;
  request.checkpoint = "/no/such/checkpoint";
  EXPECT_TRUE(absl::IsNotFound(Continue(request, text)));
  request = request_;
  request.prompt = "";
  EXPECT_TRUE(absl::IsInvalidArgument(Continue(request, text)));
  // "z" is no token of a vocabulary of 61.
  request.prompt = "z";
  EXPECT_TRUE(absl::IsInvalidArgument(Continue(request, text)));
  EXPECT_TRUE(absl::IsResourceExhausted(Continue(request_, text, 1000)));
  EXPECT_EQ(text, "");
}

// Of workers whose disks differ, each would write with its own.
TEST_F(TextGeneration, AnotherCheckpointAtTheSamePathIsNotTaken) {
  std::string text;
  TextRequest request = request_;
  request.made = OriginOf(request.checkpoint)->made;
  EXPECT_EQ(Continue(request, text), absl::OkStatus());
  request.made = "demo, step 3, plan 0123456789abcdef, yesterday";
  text.clear();
  const absl::Status status = Continue(request, text);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_TRUE(absl::StrContains(status.message(), "is another one here"))
      << status;
  EXPECT_EQ(text, "");
}

// Whether weights are loaded just then, a prompt is read, or a text is drawn.
TEST_F(TextGeneration, AnErrorOfTheSinkEndsIt) {
  std::vector<TextPiece> all;
  TextRequest request = request_;
  request.max_new_tokens = 3;
  const TierArenas arenas(Budget(1 << 20), allocator_);
  ASSERT_TRUE(ContinueText(request, *device_, arenas, [&](const TextPiece& p) {
                all.push_back(p);
                return absl::OkStatus();
              }).ok());
  EXPECT_TRUE(all.front().ids.empty()) << "said nothing while it loaded";
  EXPECT_EQ(all.back().ids.size(), 1u);
  for (size_t last = 1; last <= all.size(); ++last) {
    size_t pieces = 0;
    const absl::Status status =
        ContinueText(request, *device_, arenas, [&](const TextPiece&) {
          return ++pieces == last ? absl::CancelledError("enough")
                                  : absl::OkStatus();
        });
    EXPECT_EQ(status, absl::CancelledError("enough"));
    EXPECT_EQ(pieces, last);
    EXPECT_EQ(arenas.used(), 0u);
  }
}

}  // namespace
}  // namespace troupe
