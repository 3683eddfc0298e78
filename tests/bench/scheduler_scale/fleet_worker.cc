#include "tests/bench/scheduler_scale/fleet_worker.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/plan/span.h"
#include "proto/protocol_version.h"

namespace troupe {
namespace {

constexpr int64_t kMiB = 1 << 20;

// The keys of a group of all ranks, and what is set there for each of them.
constexpr char kHosts[] = "data/gloo/hosts";
constexpr char kPorts[] = "data/gloo/ports/";
std::string OwnKey(int rank) { return absl::StrCat("data/gloo/", rank); }
std::string PortsKey(int rank) { return absl::StrCat(kPorts, rank); }
constexpr size_t kPortBytes = 2;
constexpr size_t kHostBytes = 10;

// Of each instruction of the step, one after another.
RankTimeline TimelineOf(const std::vector<Instruction>& program) {
  RankTimeline timeline;
  timeline.set_start_unix_ns(absl::ToUnixNanos(absl::Now()));
  for (size_t i = 0; i < program.size(); ++i) {
    Span& span = *timeline.add_spans() =
        SpanOf(program[i], static_cast<int>(i));
    span.set_start_ns(1'000'000 * i);
    span.set_end_ns(1'000'000 * (i + 1));
  }
  return timeline;
}

// The first instruction of each lane, as if it ran.
void FillLanes(const std::vector<Instruction>& program,
               RankProgress& progress) {
  std::set<int> lanes;
  for (const Instruction& instruction : program) {
    if (!lanes.insert(instruction.lane()).second) continue;
    LaneProgress& lane = *progress.add_lanes();
    lane.set_lane(instruction.lane());
    lane.set_running(true);
    lane.set_seconds(0.1);
    Instruction& current = *lane.mutable_current();
    current = instruction;
    current.clear_operands();
    current.clear_after();
    *lane.mutable_finished() = current;
  }
}

}  // namespace

FleetWorker::FleetWorker(Fleet& fleet, const FleetOptions& options, int index)
    : fleet_(fleet) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // own connection
  arguments.SetMaxReceiveMessageSize(256 << 20);
  stub_ = Workers::NewStub(grpc::CreateCustomChannel(
      options.scheduler, grpc::InsecureChannelCredentials(), arguments));
  stub_->async()->Session(&context_, this);
  WorkerMessage message;
  Register& hello = *message.mutable_register_();
  hello.set_protocol_version(kProtocolVersion);
  *hello.mutable_worker() = DescribeFleetWorker(options, index);
  hello.set_pid(1000 + index);
  hello.set_address("127.0.0.1");
  AddHold();  // for the writes that other threads start
  Send(std::move(message));
  StartRead(&incoming_);
  StartCall();
}

void FleetWorker::Send(WorkerMessage message) {
  absl::MutexLock lock(&mutex_);
  SendLocked(std::move(message));
}

void FleetWorker::SendLocked(WorkerMessage message) {
  if (leaving_) return;
  queue_.push_back(std::move(message));
  if (!writing_) WriteNext();
}

void FleetWorker::WriteNext() {
  outgoing_ = std::move(queue_.front());
  queue_.pop_front();
  writing_ = true;
  StartWrite(&outgoing_);
}

void FleetWorker::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  if (ok && !queue_.empty()) return WriteNext();
  if (!ok) leaving_ = true;
  if (leaving_) StartWritesDone();
}

void FleetWorker::OnReadDone(bool ok) {
  if (!ok) return;
  {
    absl::MutexLock lock(&mutex_);
    switch (incoming_.message_case()) {
      case SchedulerMessage::kRegistered:
        fleet_.Count([this](Fleet::Progress& p) {
          ++p.registered;
          p.heartbeat =
              absl::Seconds(incoming_.registered().heartbeat_seconds());
        });
        break;
      case SchedulerMessage::kStart:
        fleet_.Count([bytes = incoming_.ByteSizeLong()](Fleet::Progress& p) {
          ++p.assigned;
          p.assigned_bytes += bytes;
          p.last_assigned = absl::Now();
        });
        Take(incoming_.start());
        break;
      case SchedulerMessage::kStoreValue:
        Handle(incoming_.store_value());
        break;
      case SchedulerMessage::kStop:
        LetGo();
        break;
      default:
        break;
    }
  }
  StartRead(&incoming_);
}

void FleetWorker::Take(const Assignment& start) {
  seat_ = std::make_unique<Seat>();
  seat_->ref = start.ref();
  seat_->trace_every = start.trace_every();
  seat_->ranks = start.worker_names_size();
  for (const Program& program : start.plan().roles(0).programs()) {
    if (program.kind() != Program::TRAIN) continue;
    seat_->train.assign(program.instructions().begin(),
                        program.instructions().end());
  }
  const int rank = seat_->ref.rank();
  Set(OwnKey(rank), kHostBytes + kPortBytes * seat_->ranks);
  Get(rank == 0 ? OwnKey(0) : kHosts);
}

void FleetWorker::Set(const std::string& key, size_t bytes) {
  WorkerMessage message;
  StoreSet& set = *message.mutable_store_set();
  *set.mutable_ref() = seat_->ref;
  set.set_key(key);
  set.set_value(std::string(bytes, 'a'));
  seat_->store_bytes += key.size() + bytes;
  SendLocked(std::move(message));
}

void FleetWorker::Get(const std::string& key) {
  WorkerMessage message;
  *message.mutable_store_get()->mutable_ref() = seat_->ref;
  message.mutable_store_get()->set_key(key);
  SendLocked(std::move(message));
}

void FleetWorker::HandOut() {
  Set(kHosts, kHostBytes * seat_->ranks);
  for (int rank = 0; rank < seat_->ranks; ++rank) {
    Set(PortsKey(rank), kPortBytes * seat_->ranks);
  }
}

void FleetWorker::Handle(const StoreValue& value) {
  if (seat_ == nullptr) return;
  if (seat_->ready) {
    answered_ = true;
    return;
  }
  const int rank = seat_->ref.rank();
  seat_->store_bytes += value.key().size() + value.value().size();
  if (value.key() == PortsKey(rank)) return Ready();
  if (value.key() == kHosts) return Get(PortsKey(rank));
  if (++seat_->gathered < seat_->ranks) return Get(OwnKey(seat_->gathered));
  HandOut();
  Get(kHosts);
}

void FleetWorker::Ready() {
  seat_->ready = true;
  WorkerMessage message;
  *message.mutable_rank_ready()->mutable_ref() = seat_->ref;
  message.mutable_rank_ready()->set_first_step(1);
  SendLocked(std::move(message));
  fleet_.Count([&seat = *seat_](Fleet::Progress& p) {
    ++p.ready;
    p.last_ready = absl::Now();
    int64_t& most =
        seat.ref.rank() == 0 ? p.store_bytes_first : p.store_bytes_other;
    most = std::max(most, seat.store_bytes);
  });
}

void FleetWorker::LetGo() {
  if (seat_ == nullptr) return;
  WorkerMessage message;
  *message.mutable_ended()->mutable_ref() = seat_->ref;
  message.mutable_ended()->set_ok(true);
  message.mutable_ended()->set_step(seat_->step);
  SendLocked(std::move(message));
  seat_.reset();
  fleet_.Count([](Fleet::Progress& p) { ++p.ended; });
}

void FleetWorker::Heartbeat() {
  WorkerMessage message;
  message.mutable_heartbeat()->set_memory_bytes(400 * kMiB);
  absl::MutexLock lock(&mutex_);
  if (seat_ != nullptr && seat_->ready) {
    RankProgress& progress = *message.mutable_heartbeat()->mutable_progress();
    *progress.mutable_ref() = seat_->ref;
    progress.set_program(Program::TRAIN);
    progress.set_step(seat_->step + 1);
    FillLanes(seat_->train, progress);
  }
  SendLocked(std::move(message));
}

void FleetWorker::ReportStep(int64_t step) {
  absl::MutexLock lock(&mutex_);
  if (seat_ == nullptr) return;
  seat_->step = step;
  WorkerMessage message;
  StepReport& report = *message.mutable_step();
  *report.mutable_ref() = seat_->ref;
  StepRecord& record = *report.mutable_record();
  record.set_step(step);
  record.set_loss(10.0 / step);
  record.set_grad_norm(1);
  record.set_learning_rate(1e-4);
  record.set_step_seconds(1);
  record.set_memory_bytes(400 * kMiB);
  record.set_samples_consumed(step * seat_->ranks);
  if (seat_->trace_every > 0 && step % seat_->trace_every == 0) {
    *report.mutable_timeline() = TimelineOf(seat_->train);
  }
  SendLocked(std::move(message));
}

absl::Duration FleetWorker::StoreRoundTrip() {
  absl::MutexLock lock(&mutex_);
  if (seat_ == nullptr) return absl::InfiniteDuration();
  answered_ = false;
  WorkerMessage message;
  *message.mutable_store_get()->mutable_ref() = seat_->ref;
  message.mutable_store_get()->set_key(OwnKey(seat_->ref.rank()));
  const absl::Time asked = absl::Now();
  SendLocked(std::move(message));
  const bool in_time =
      mutex_.AwaitWithTimeout(absl::Condition(&answered_), absl::Seconds(10));
  return in_time ? absl::Now() - asked : absl::InfiniteDuration();
}

void FleetWorker::Leave() {
  WorkerMessage message;
  message.mutable_goodbye()->set_reason("the fleet goes home");
  {
    absl::MutexLock lock(&mutex_);
    SendLocked(std::move(message));
    leaving_ = true;  // the last write's end closes our half
  }
  RemoveHold();
}

void FleetWorker::OnDone(const grpc::Status&) {
  fleet_.Count([](Fleet::Progress& p) { ++p.gone; });
}

}  // namespace troupe
