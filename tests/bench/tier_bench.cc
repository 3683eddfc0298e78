// The NVMe tier's 1 MiB reads and writes beside fio's, which are io_uring, past
// the page cache, with registered buffers and file, as deep, in the same file:
//
//   bazel run //tests/bench:tier_bench -- --dir /nvme
//
// They take turns, first one, then another: fio, the engine, and a spill file,
// which is the engine with checksums, in a file of its own beside. All three
// have memory of large pages, where the system gives them; with small ones a
// disk may do half of it. Ratios are of one round; their median counts, as a
// disk's rate changes by the second.
//
// And what training makes of it (tier_training.h): steps of a job of which a
// part rests below the device, over those of the same job in memory:
//
//   bazel run //tests/bench:tier_bench -- training --dir /nvme
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "storage/engine/make_engine.h"
#include "storage/spill/spill_file.h"
#include "storage/spill/spill_queue.h"
#include "storage/tier/allocator.h"
#include "tests/bench/machine_span.h"
#include "tests/bench/tier_training.h"

namespace troupe {
namespace {

constexpr uint64_t kPiece = 1 << 20;

struct Options {
  std::string dir = "/tmp";
  int depth = MakeIoEngineOptions().depth;
  int mebibytes = 1024;
  int seconds = 1;
  int rounds = 9;
};

std::unique_ptr<IoEngine> NewEngine(const Options& options) {
  auto engine =
      MakeIoEngine({.kind = "io_uring", .depth = options.depth, .log = false});
  CHECK_OK(engine.status());
  return *std::move(engine);
}

// What a command prints; nothing where it fails.
std::optional<std::string> OutputOf(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  CHECK(pipe != nullptr) << command;
  std::string out;
  std::array<char, 4096> part;
  while (const size_t bytes = fread(part.data(), 1, part.size(), pipe)) {
    out.append(part.data(), bytes);
  }
  if (pclose(pipe) != 0) return std::nullopt;
  return out;
}

double FioBytesPerSecond(const Options& options, const std::string& file,
                         IoKind kind) {
  const std::string mode = kind == IoKind::kRead ? "read" : "write";
  const std::optional<std::string> out = OutputOf(absl::StrCat(
      "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 fio --name=tier "
      "--ioengine=io_uring --direct=1 --bs=1m --fixedbufs=1 "
      "--registerfiles=1 --allow_file_create=0 --output-format=json "
      "--time_based --runtime=",
      options.seconds, " --iodepth=", options.depth,
      " --size=", options.mebibytes, "m --rw=", mode, " --filename=", file));
  CHECK(out.has_value()) << "fio failed";
  return nlohmann::json::parse(*out)["jobs"][0][mode]["bw_bytes"];
}

// Bytes a second of pieces that `start` begins, one after another from the
// front of the file to its end and again, and `wait` waits for.
struct Mover {
  std::function<void(uint64_t offset)> start;
  std::function<size_t()> wait;  // how many have ended
  int in_flight_max = 0;
};
double BytesPerSecond(const Options& options, const Mover& mover) {
  const RealClock clock;
  const uint64_t file_bytes = options.mebibytes * kPiece;
  const int64_t begin = clock.MonotonicNanos();
  const int64_t end = begin + int64_t{options.seconds} * 1'000'000'000;
  uint64_t started = 0;
  uint64_t ended = 0;
  while (true) {
    const bool goes_on = clock.MonotonicNanos() < end;
    if (!goes_on && ended == started) break;
    while (goes_on && started - ended < mover.in_flight_max) {
      mover.start(started * kPiece % file_bytes);
      ++started;
    }
    ended += mover.wait();
  }
  return static_cast<double>(ended * kPiece) /
         static_cast<double>(clock.MonotonicNanos() - begin) * 1e9;
}

// Memory that the engine knows, random so that no disk compresses it.
class Buffers {
 public:
  Buffers(IoEngine& engine, int count)
      : engine_(engine),
        bytes_(count * kPiece),
        data_(static_cast<char*>(HostAllocator().Allocate(bytes_).value())) {
    uint64_t word = 88172645463325252u;
    for (size_t i = 0; i < bytes_; i += sizeof(word)) {
      word ^= word << 13;
      word ^= word >> 7;
      word ^= word << 17;
      std::copy_n(reinterpret_cast<const char*>(&word), sizeof(word),
                  data_ + i);
    }
    CHECK_OK(engine.RegisterMemory(data_, bytes_));
  }
  ~Buffers() {
    engine_.ForgetMemory(data_);
    HostAllocator().Free(data_, bytes_);
  }
  char* at(size_t i) const { return data_ + i * kPiece; }

 private:
  IoEngine& engine_;
  const size_t bytes_;
  char* const data_;
};

double EngineBytesPerSecond(const Options& options, const std::string& path,
                            IoKind kind) {
  const std::unique_ptr<IoEngine> engine = NewEngine(options);
  const Buffers buffers(*engine, options.depth);
  const IoFile file = engine->Open(path, IoMode::kDirect).value();
  std::vector<size_t> free;
  for (int i = 0; i < options.depth; ++i) free.push_back(i);
  const double rate = BytesPerSecond(
      options, {.start =
                    [&](uint64_t offset) {
                      const size_t buffer = free.back();
                      free.pop_back();
                      CHECK_OK(engine->Submit({.kind = kind,
                                               .file = file,
                                               .offset = offset,
                                               .data = buffers.at(buffer),
                                               .bytes = kPiece,
                                               .tag = buffer}));
                    },
                .wait =
                    [&] {
                      const auto ended = engine->Poll(absl::InfiniteDuration());
                      for (const IoCompletion& done : ended) {
                        CHECK_OK(done.status);
                        free.push_back(done.tag);
                      }
                      return ended.size();
                    },
                .in_flight_max = options.depth});
  CHECK_OK(engine->Close(file));
  return rate;
}

// Twice as many moves as the disk takes, as a lane has the next one at hand.
class SpillContestant {
 public:
  explicit SpillContestant(const Options& options)
      : options_(options),
        engine_(NewEngine(options)),
        moves_max_(2 * options.depth),
        buffers_(*engine_, moves_max_) {
    auto file = SpillFile::Create({.directory = options.dir,
                                   .bytes = options.mebibytes * kPiece,
                                   .owner = {.cluster = "tier_bench"}});
    CHECK_OK(file.status());
    file_ = *std::move(file);
    queue_ = SpillQueue::Open(*file_, *engine_).value();
    for (uint64_t at = 0; at < file_->bytes(); at += kPiece) {
      CHECK_OK(queue_->Start(IoKind::kWrite, {at, kPiece}, buffers_.at(0),
                             [](const absl::Status& s) { CHECK_OK(s); }));
      queue_->Poll(absl::ZeroDuration());
    }
    queue_->Drain();
  }
  ~SpillContestant() { queue_.reset(); }

  double BytesPerSecond(IoKind kind) {
    size_t ended = 0;
    const auto done = [&ended](const absl::Status& status) {
      CHECK_OK(status);
      ++ended;
    };
    std::vector<size_t> free;
    for (int i = 0; i < moves_max_; ++i) free.push_back(i);
    return troupe::BytesPerSecond(
        options_,
        {.start =
             [&](uint64_t offset) {
               const size_t buffer = free.back();
               free.pop_back();
               char* const data = buffers_.at(buffer);
               const auto ends = [&free, buffer,
                                  done](const absl::Status& status) {
                 free.push_back(buffer);
                 done(status);
               };
               CHECK_OK(queue_->Start(kind, {offset, kPiece}, data, ends));
             },
         .wait =
             [&] {
               queue_->Poll(absl::InfiniteDuration());
               return std::exchange(ended, 0);
             },
         .in_flight_max = moves_max_});
  }

 private:
  const Options& options_;
  const std::unique_ptr<IoEngine> engine_;
  const int moves_max_;
  const Buffers buffers_;
  std::unique_ptr<SpillFile> file_;
  std::unique_ptr<SpillQueue> queue_;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The rates of the contestants, round by round.
struct Rates {
  std::vector<double> fio, engine, spill;
};

void Print(const char* what, const Rates& rates) {
  const auto line = [&](const char* who, const std::vector<double>& of) {
    std::printf("%-6s  %-10s %6.2f GB/s", what, who, Median(of) * 1e-9);
    std::vector<double> ratios;
    for (size_t i = 0; i < rates.fio.size() && &of != &rates.fio; ++i) {
      ratios.push_back(of[i] / rates.fio[i]);
    }
    if (!ratios.empty()) {
      std::printf("   %.3f of fio's (%.3f to %.3f)", Median(ratios),
                  *std::min_element(ratios.begin(), ratios.end()),
                  *std::max_element(ratios.begin(), ratios.end()));
    }
    std::printf("\n");
  };
  if (!rates.fio.empty()) line("fio", rates.fio);
  line("engine", rates.engine);
  line("spill file", rates.spill);
}

void Run(const Options& options) {
  MachineSpan span(1);
  const std::optional<std::string> fio = OutputOf("fio --version 2> /dev/null");
  if (fio.has_value()) {
    std::printf("%s, 1 MiB, depth %d, %s\n", options.dir.c_str(), options.depth,
                fio->substr(0, fio->find('\n')).c_str());
  } else {
    std::printf(
        "fio is missing: there are no ratios; third_party/install.sh installs "
        "it\n");
  }
  // The file that fio and the engine share is that of a spill file, too, so
  // that it goes whatever becomes of this process.
  SpillContestant spill(options);
  auto shared = SpillFile::Create({.directory = options.dir,
                                   .bytes = options.mebibytes * kPiece,
                                   .owner = {.cluster = "tier_bench"}});
  CHECK_OK(shared.status());
  const std::string& path = (*shared)->path();
  // Its blocks are made of the room that it took.
  EngineBytesPerSecond(options, path, IoKind::kWrite);
  for (const IoKind kind : {IoKind::kWrite, IoKind::kRead}) {
    Rates rates;
    for (int round = 0; round < options.rounds; ++round) {
      const std::array<std::function<void()>, 3> turns = {
          [&] {
            if (!fio.has_value()) return;
            rates.fio.push_back(FioBytesPerSecond(options, path, kind));
          },
          [&] {
            rates.engine.push_back(EngineBytesPerSecond(options, path, kind));
          },
          [&] { rates.spill.push_back(spill.BytesPerSecond(kind)); }};
      for (size_t i = 0; i < turns.size(); ++i) {
        turns[(round + i) % turns.size()]();
      }
    }
    Print(kind == IoKind::kRead ? "reads" : "writes", rates);
    std::fflush(stdout);
  }
  std::printf("%s\n", span.Line().c_str());
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  CLI::App app("Times the NVMe tier's reads and writes beside fio's.");
  troupe::Options options;
  app.add_option("--dir", options.dir, "on the disk that is timed");
  app.add_option("--depth", options.depth, "requests in flight")
      ->check(CLI::Range(1, 512));
  app.add_option("--mebibytes", options.mebibytes, "of each of two files")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--seconds", options.seconds, "of each turn")
      ->check(CLI::Range(1, 60));
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 99));
  CLI::App& training = *app.add_subcommand(
      "training", "Times steps of a job that rests below the device.");
  troupe::TierTrainingOptions steps = {
      .job = {.micro_batches = 4, .sequence_length = 512}};
  training.add_option("--dir", options.dir, "of the nvme tier");
  training.add_option("--rows", steps.rows, "a part of their names");
  training.add_option("--rounds", steps.rounds)->check(CLI::Range(1, 99));
  training.add_option("--model", steps.job.model)
      ->check(CLI::IsMember(troupe::BenchModels()));
  training.add_option("--precision", steps.job.precision)
      ->check(CLI::IsMember({"f32", "bf16", "fp16"}));
  training.add_option("--threads", steps.job.threads);
  training.add_option("--batch", steps.job.batch, "sequences of a micro-batch");
  training.add_option("--micro-batches", steps.job.micro_batches, "in a step");
  training.add_option("--seq", steps.job.sequence_length, "of tokens");
  CLI11_PARSE(app, argc, argv);
  if (!training.parsed()) {
    troupe::Run(options);
    return 0;
  }
  steps.dir = options.dir;
  return troupe::TimeTierTraining(steps) ? 0 : 1;
}
