#include "worker/service/link_measuring.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "worker/actor/thread_name.h"
#include "worker/collective/create_communicator.h"

namespace troupe {
namespace {

// Whatever a request says.
constexpr int kRanksMax = 64;
constexpr double kSecondsMax = 60;
constexpr int64_t kBytesMax = int64_t{256} << 20;

RankRef RefOf(const MeasureLinks& request) {
  RankRef ref;
  ref.set_measurement(request.measurement());
  ref.set_rank(request.rank());
  return ref;
}

absl::Status CheckRequest(const MeasureLinks& request) {
  const int ranks = request.worker_names_size();
  if (ranks >= 2 && ranks <= kRanksMax && ranks % 2 == 0 &&
      request.rank() >= 0 && request.rank() < ranks) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("rank ", request.rank(), " of ", ranks,
                   " measures no links; "
                   "scheduler and worker must be of one build"));
}

}  // namespace

LinkMeasuring::LinkMeasuring(const MeasureLinks& request, SendToScheduler send,
                             std::string address)
    : request_(request),
      send_(std::move(send)),
      address_(std::move(address)),
      store_(RefOf(request), send_) {
  thread_ = std::thread([this] { Run(); });
}

LinkMeasuring::~LinkMeasuring() {
  const absl::Status why = absl::CancelledError("the measurement is stopped");
  store_.Abort(why);
  join_abort_.Abort(why);
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    if (communicator_ != nullptr) communicator_->Abort(why);
  }
  thread_.join();
}

void LinkMeasuring::OnValue(const StoreValue& value) {
  if (value.ref().measurement() == number()) store_.OnValue(value);
}

absl::StatusOr<HostLinks> LinkMeasuring::Measure() {
  RETURN_IF_ERROR(CheckRequest(request_));
  const absl::Time begin = SteadyNow();
  const absl::Duration time_max =
      absl::Seconds(std::clamp(request_.seconds_max(), 0.001, kSecondsMax));
  std::vector<int> ranks(request_.worker_names_size());
  std::iota(ranks.begin(), ranks.end(), 0);
  ASSIGN_OR_RETURN(
      auto joined,
      CreateCommunicator("gloo", {.group = {.name = "links", .ranks = ranks},
                                  .rank = request_.rank(),
                                  .store = &store_,
                                  .host = address_,
                                  .timeout = time_max,
                                  .abort = &join_abort_}));
  Communicator* communicator = joined.get();
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return absl::CancelledError("stopped");
    communicator_ = std::move(joined);
  }
  const RealClock clock;
  return MeasureHostLinks(
      *communicator, clock,
      {.bytes_max = std::clamp<int64_t>(request_.bytes_max(), 0, kBytesMax),
       .time_max = time_max - (SteadyNow() - begin)});
}

void LinkMeasuring::Run() {
  NameThisThread("measure links");
  const absl::StatusOr<HostLinks> links = Measure();
  std::unique_ptr<Communicator> communicator;
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return;
    communicator = std::move(communicator_);
  }
  communicator.reset();
  WorkerMessage message;
  LinksMeasured& answer = *message.mutable_links_measured();
  answer.set_measurement(number());
  if (links.ok()) {
    *answer.mutable_alone() = links->alone;
    answer.set_together_bytes_per_second(links->together);
  } else {
    answer.set_error(std::string(links.status().message()));
    LogWarning(absl::StrCat("links to other hosts are not measured: ",
                            links.status().message()));
  }
  // Without a scheduler there is nobody to tell.
  send_(std::move(message)).IgnoreError();
}

}  // namespace troupe
