#include "worker/service/generation_runner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "storage/disk/roots.h"
#include "worker/actor/thread_name.h"
#include "worker/collective/communicator.h"
#include "worker/rank/resident_memory.h"

namespace troupe {
namespace {

RankRef RefOf(const GenerateText& request) {
  RankRef ref;
  ref.set_text(request.request());
  ref.set_rank(request.rank());
  return ref;
}

}  // namespace

GenerationRunner::GenerationRunner(const GenerateText& request,
                                   const GenerationOptions& options)
    : request_(request),
      options_(options),
      store_(RefOf(request), options.send) {
  thread_ = std::thread([this] { Run(); });
}

GenerationRunner::~GenerationRunner() {
  StopText stop;
  stop.set_request(request_.request());
  stop.set_reason("the worker stops");
  Stop(stop);
  thread_.join();
}

void GenerationRunner::Stop(const StopText& stop) {
  if (stop.request() != request_.request()) return;
  const absl::Status why = absl::CancelledError(stop.reason());
  store_.Abort(why);
  join_abort_.Abort(why);
  absl::MutexLock lock(&mutex_);
  if (stopped_.ok()) stopped_ = why;
  if (ranks_ != nullptr) ranks_->Abort(why);
}

void GenerationRunner::OnValue(const StoreValue& value) {
  if (value.ref().text() == request_.request()) store_.OnValue(value);
}

absl::Status GenerationRunner::stopped() const {
  absl::MutexLock lock(&mutex_);
  return stopped_;
}

absl::Status GenerationRunner::SendPiece(const TextPiece& piece) {
  RETURN_IF_ERROR(stopped());
  if (request_.rank() > 0 && loaded_) return absl::OkStatus();
  loaded_ |= piece.loaded;
  WorkerMessage message;
  GeneratedText& text = *message.mutable_generated();
  text.set_request(request_.request());
  text.set_text(piece.text);
  text.set_tokens(static_cast<int32_t>(piece.ids.size()));
  text.mutable_ids()->Assign(piece.ids.begin(), piece.ids.end());
  text.set_loaded(piece.loaded);
  return options_.send(std::move(message));
}

absl::Status GenerationRunner::Join() {
  if (request_.plan().groups().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::unique_ptr<TextRanks> ranks,
                   TextRanks::Join({.plan = request_.plan(),
                                    .rank = request_.rank(),
                                    .device = options_.resources.device,
                                    .store = store_,
                                    .abort = join_abort_,
                                    .host = options_.address,
                                    .timeout = absl::Seconds(
                                        request_.collective_seconds_max())}));
  absl::MutexLock lock(&mutex_);
  ranks_ = std::move(ranks);
  return stopped_;
}

absl::Status GenerationRunner::Generate() {
  RETURN_IF_ERROR(CheckJobPath("checkpoint", request_.checkpoint()));
  const KeptFreeMemory kept;
  RETURN_IF_ERROR(Join());
  TextRanks* ranks = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    ranks = ranks_.get();
  }
  return ContinueText(
      {.checkpoint = request_.checkpoint(),
       .made = request_.made(),
       .plan = request_.plan(),
       .rank = request_.rank(),
       .prompt = request_.prompt(),
       .prompt_ids = {request_.prompt_ids().begin(),
                      request_.prompt_ids().end()},
       .max_new_tokens = request_.max_new_tokens(),
       .ignore_eos = request_.ignore_eos(),
       .sampling = {.temperature = request_.temperature(),
                    .top_k = request_.top_k(),
                    .seed = request_.seed()}},
      options_.resources.device, options_.resources.arenas,
      [this](const TextPiece& piece) { return SendPiece(piece); }, ranks);
}

void GenerationRunner::SendLast(const absl::Status& status) {
  WorkerMessage message;
  GeneratedText& last = *message.mutable_generated();
  last.set_request(request_.request());
  last.set_done(true);
  if (!status.ok()) {
    last.set_error(std::string(status.message()));
    // What a stop breaks is no failure of this rank, and no one else's.
    const absl::Status told = stopped();
    last.set_stopped(!told.ok());
    const absl::optional<int> missing = MissingRank(status);
    if (told.ok() && missing.has_value()) last.set_missing_rank(*missing);
  }
  // Without a scheduler there is nobody to tell.
  options_.send(std::move(message)).IgnoreError();
}

void GenerationRunner::Run() {
  NameThisThread("generate");
  const absl::Status status = Generate();
  ReleaseFreeMemory();
  if (!stopped().ok()) {
    LogInfo(absl::StrCat("text ", request_.request(),
                         " is stopped: ", stopped().message()));
  } else if (!status.ok()) {
    LogWarning(absl::StrCat("text ", request_.request(),
                            " failed: ", status.message()));
  }
  std::unique_ptr<TextRanks> ranks;
  {
    absl::MutexLock lock(&mutex_);
    ranks = std::move(ranks_);
  }
  ranks.reset();  // peers that wait for this rank need not any longer
  SendLast(status);
  ended_.Notify();
}

}  // namespace troupe
