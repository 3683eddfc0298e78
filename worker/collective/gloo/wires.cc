#include "worker/collective/gloo/wires.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"

namespace troupe {
namespace {

// How long peers have to answer once a wait has failed.
constexpr absl::Duration kAnswer = absl::Milliseconds(200);
constexpr auto kForever = std::chrono::milliseconds(std::chrono::hours(9999));

void Expect(Wire::Traffic& traffic, int peer) {
  CHECK(traffic.pending == 0 || traffic.peer == peer)
      << "a wire to " << traffic.peer << " has a message for " << peer;
  traffic.peer = peer;
  ++traffic.pending;
}

}  // namespace

Wires::Wires(std::unique_ptr<GlooMesh> mesh, std::shared_ptr<Watch> watch)
    : rank_(mesh->rank),
      size_(mesh->size),
      watch_(std::move(watch)),
      mesh_(std::move(mesh)),
      notices_(std::make_unique<Notices>(*mesh_)) {
  watch_->Add(*this);
}

Wires::~Wires() {
  watch_->Remove(*this);
  {
    absl::MutexLock lock(&mutex_);
    if (failing_) return;  // closed already
  }
  absl::MutexLock closing(&closing_);
  SayAndClose(Notice::kLeft, "");
}

absl::Status Wires::Begin(absl::Time deadline, uint64_t slot) {
  const absl::Duration time = deadline - SteadyNow();
  const absl::Time soft_deadline = deadline - std::min(kAnswer, time / 4);
  {
    absl::MutexLock lock(&mutex_);
    if (failing_) return absl::CancelledError("aborted");
    active_ = true;
    slot_ = slot;
    deadline_ = deadline;
    soft_deadline_ = soft_deadline;
  }
  watch_->Expect(soft_deadline);
  return absl::OkStatus();
}

void Wires::End() {
  std::string why;
  {
    absl::MutexLock lock(&mutex_);
    active_ = false;
    if (aborted_.ok()) {
      failing_ = false;  // the watch was about to interrupt what ended well
      return;
    }
    why = std::string(aborted_.message());
  }
  // Aborted while the operation ended well: the peers are to know now.
  absl::MutexLock closing(&closing_);
  SayAndClose(Notice::kAborted, why);
}

Wire Wires::Attach(void* memory, size_t bytes) {
  Wire wire;
  wire.buffer = mesh_->createUnboundBuffer(memory, bytes);
  return wire;
}

char* Wires::Scratch(size_t bytes) {
  if (bytes > scratch_bytes_) {
    scratch_.reset(new char[bytes]);
    scratch_bytes_ = bytes;
  }
  return scratch_.get();
}

absl::Status Wires::PostSend(Wire& wire, const WireMessage& message) {
  Expect(wire.sends, message.peer);
  const absl::Status posted = CatchGloo([&] {
    wire.buffer->send(message.peer, slot_ + message.tag, message.offset,
                      message.bytes);
  });
  if (!posted.ok()) return Fail(message.peer);
  if (message.payload) {
    sent_bytes_.fetch_add(message.bytes, std::memory_order_relaxed);
  }
  return absl::OkStatus();
}

absl::Status Wires::PostRecv(Wire& wire, const WireMessage& message) {
  Expect(wire.recvs, message.peer);
  const absl::Status posted = CatchGloo([&] {
    wire.buffer->recv(message.peer, slot_ + message.tag, message.offset,
                      message.bytes);
  });
  return posted.ok() ? posted : Fail(message.peer);
}

absl::Status Wires::WaitSend(Wire& wire) { return WaitOne(wire, Wait::kSend); }
absl::Status Wires::WaitRecv(Wire& wire) { return WaitOne(wire, Wait::kRecv); }

absl::Status Wires::WaitAllSends(absl::Span<Wire> wires) {
  for (Wire& wire : wires) {
    while (wire.sends.pending > 0) RETURN_IF_ERROR(WaitSend(wire));
  }
  return absl::OkStatus();
}

absl::Status Wires::WaitAllRecvs(absl::Span<Wire> wires) {
  for (Wire& wire : wires) {
    while (wire.recvs.pending > 0) RETURN_IF_ERROR(WaitRecv(wire));
  }
  return absl::OkStatus();
}

absl::Status Wires::WaitOne(Wire& wire, Wait kind) {
  Wire::Traffic& traffic = kind == Wait::kSend ? wire.sends : wire.recvs;
  bool failing = false;
  {
    absl::MutexLock lock(&mutex_);
    failing = failing_;
    waiting_ = kind;
    wire_ = &wire;
  }
  if (failing) return Fail(traffic.peer);
  bool done = false;
  const absl::Status waited = CatchGloo([&] {
    done = kind == Wait::kSend ? wire.buffer->waitSend(kForever)
                               : wire.buffer->waitRecv(kForever);
  });
  {
    absl::MutexLock lock(&mutex_);
    waiting_ = Wait::kNone;
    wire_ = nullptr;
  }
  if (!waited.ok() || !done) return Fail(traffic.peer);
  --traffic.pending;
  return absl::OkStatus();
}

absl::Status Wires::Fail(int peer) {
  {
    absl::MutexLock lock(&mutex_);
    failing_ = true;  // from here on the notices are this thread's
    waiting_ = Wait::kNone;
    wire_ = nullptr;
  }
  Verdict verdict = Judge(peer);
  absl::MutexLock lock(&mutex_);
  verdict_ = std::move(verdict);
  return absl::Status(verdict_.code, verdict_.what);
}

Verdict Wires::Judge(int peer) {
  absl::Status aborted;
  absl::Time end;
  {
    absl::MutexLock lock(&mutex_);
    aborted = aborted_;
    end = std::min(deadline_, SteadyNow() + kAnswer);
  }
  if (!aborted.ok()) {
    notices_->Say(Notice::kAborted, rank_, aborted.message());
    return {absl::StatusCode::kCancelled, rank_,
            absl::StrCat("aborted: ", aborted.message())};
  }
  notices_->Poll();
  std::optional<Verdict> verdict = notices_->Blame(peer);
  const bool lost =
      verdict.has_value() && verdict->code == absl::StatusCode::kUnavailable;
  notices_->Say(lost ? Notice::kLost : Notice::kWaiting,
                lost ? verdict->peer : peer, "");
  while (!verdict.has_value() && SteadyNow() < end) {
    absl::SleepFor(absl::Milliseconds(1));
    notices_->Poll();
    verdict = notices_->Blame(peer);
  }
  return verdict.has_value() ? *std::move(verdict) : notices_->BlameNow(peer);
}

Verdict Wires::Close() {
  Verdict verdict;
  {
    absl::MutexLock lock(&mutex_);
    active_ = false;
    verdict = verdict_;
  }
  CloseMesh(verdict.peer);
  return verdict;
}

void Wires::EndWait() {
  failing_ = true;
  if (waiting_ == Wait::kSend) wire_->buffer->abortWaitSend();
  if (waiting_ == Wait::kRecv) wire_->buffer->abortWaitRecv();
}

void Wires::Interrupt(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (failing_ || !active_) return;
  aborted_ = why;
  EndWait();
}

void Wires::Abort(const absl::Status& why) {
  // From before others can see that it fails: an operation that then begins
  // closes the mesh only when the peers have been told why.
  absl::MutexLock closing(&closing_);
  {
    absl::MutexLock lock(&mutex_);
    if (failing_) return;
    aborted_ = why;
    EndWait();
    if (active_) return;  // the thread of the operation does the rest
    verdict_ = {absl::StatusCode::kCancelled, rank_,
                absl::StrCat("aborted: ", why.message())};
  }
  SayAndClose(Notice::kAborted, why.message());
}

void Wires::SayAndClose(Notice::Kind kind, absl::string_view text) {
  if (mesh_ == nullptr) return;
  notices_->Say(kind, rank_, text);
  CloseNow(/*culprit=*/-1);
}

void Wires::CloseMesh(int culprit) {
  absl::MutexLock lock(&closing_);
  CloseNow(culprit);
}

void Wires::CloseNow(int culprit) {
  if (mesh_ == nullptr) return;
  notices_->Flush(culprit);
  notices_ = nullptr;
  mesh_ = nullptr;
}

bool Wires::SeesFailure() {
  absl::MutexLock lock(&mutex_);
  if (failing_ || active_) return failing_;
  notices_->Poll();
  return notices_->Bad();
}

absl::Time Wires::Look() {
  absl::MutexLock lock(&mutex_);
  if (!active_ || failing_) return absl::InfiniteFuture();
  bool hopeless = SteadyNow() >= soft_deadline_;
  if (!hopeless) {
    notices_->Poll();
    hopeless = notices_->Bad();
  }
  if (!hopeless) return soft_deadline_;
  EndWait();
  return absl::InfiniteFuture();
}

}  // namespace troupe
