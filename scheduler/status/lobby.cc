#include "scheduler/status/lobby.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/steady_time.h"

namespace troupe {
namespace {

constexpr char kEndOfHead[] = "\r\n\r\n";

}  // namespace

Lobby::Lobby(Answer answer, size_t connections_max)
    : answer_(std::move(answer)),
      connections_max_(connections_max),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CHECK(wake_ >= 0) << "eventfd, errno " << errno;
  threads_.emplace_back([this] { Watch(); });
  for (int i = 0; i < kThreads; ++i) {
    threads_.emplace_back([this] { Serve(); });
  }
}

Lobby::~Lobby() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  Wake();
  for (std::thread& thread : threads_) thread.join();
  close(wake_);
}

void Lobby::Admit(std::unique_ptr<AcceptedWire> wire) {
  {
    absl::MutexLock lock(&mutex_);
    arrivals_.push_back(
        {.wire = std::move(wire), .until = SteadyNow() + kHeadMax});
  }
  Wake();
}

void Lobby::Wake() const {
  // A counter that is full wakes as well.
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof(one));
}

void Lobby::TakeArrivals() {
  for (Guest& guest : std::exchange(arrivals_, {})) {
    guests_.push_back(std::move(guest));
  }
  MakeRoom();
}

void Lobby::MakeRoom() {
  size_t unsent = 0;
  for (const Guest& guest : guests_) unsent += guest.answer.bytes.size();
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    // Requests that wait to be answered count as well; they are not dropped.
    const bool too_many = guests_.size() + ready_.size() > connections_max_;
    const bool too_much = unsent > kUnsentBytesMax;
    if (!too_many && !(too_much && !guest->reads())) {
      if (!too_much) return;
      ++guest;
      continue;
    }
    unsent -= guest->answer.bytes.size();
    guest = guests_.erase(guest);
  }
}

void Lobby::Watch() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      TakeArrivals();
    }
    std::vector<pollfd> files = {{.fd = wake_, .events = POLLIN}};
    absl::Time first = SteadyNow() + absl::Minutes(1);
    for (const Guest& guest : guests_) {
      files.push_back(
          {.fd = guest.wire->socket(), .events = guest.wire->events()});
      first = std::min(first, guest.until);
    }
    const absl::Duration patience = first - SteadyNow();
    poll(files.data(), files.size(),
         static_cast<int>(std::clamp<int64_t>(
             absl::ToInt64Milliseconds(patience) + 1, 0, 60'000)));
    uint64_t woken = 0;
    [[maybe_unused]] const ssize_t count = read(wake_, &woken, sizeof(woken));
    const absl::Time now = SteadyNow();
    size_t place = 1;
    for (auto guest = guests_.begin(); guest != guests_.end(); ++place) {
      const bool stays = files[place].revents == 0 ||
                         (guest->reads() ? Read(*guest) : Send(*guest));
      if (stays && now < guest->until) {
        ++guest;
      } else {
        guest = guests_.erase(guest);
      }
    }
  }
}

bool Lobby::Read(Guest& guest) {
  char bytes[AcceptedWire::kReadBytes];
  while (true) {
    const ssize_t count = guest.wire->Read(bytes, sizeof(bytes));
    if (count == AcceptedWire::kLater) return true;
    if (count == AcceptedWire::kOver) return false;
    const size_t seen = guest.head.size();
    guest.head.append(bytes, count);
    if (HasAsked(guest, std::max<size_t>(seen, 3) - 3)) return false;
    if (guest.head.size() > kHeadBytesMax) return false;
  }
}

bool Lobby::HasAsked(Guest& guest, size_t from) {
  const size_t end = guest.head.find(kEndOfHead, from);
  if (end == std::string::npos) return false;
  const size_t size = end + sizeof(kEndOfHead) - 1;
  absl::MutexLock lock(&mutex_);
  ready_.push_back({.wire = std::move(guest.wire),
                    .head = guest.head.substr(0, size),
                    .rest = guest.head.substr(size)});
  return true;
}

bool Lobby::Send(Guest& guest) {
  const std::string& bytes = guest.answer.bytes;
  while (guest.sent < bytes.size()) {
    const ssize_t count =
        guest.wire->Write(bytes.data() + guest.sent, bytes.size() - guest.sent);
    if (count == AcceptedWire::kLater) return true;
    if (count == AcceptedWire::kOver) return false;
    guest.sent += count;
  }
  if (guest.answer.last) {
    guest.wire->Finish();
    return false;
  }
  guest = {.wire = std::move(guest.wire),
           .until = SteadyNow() + kHeadMax,
           .head = std::move(guest.head)};
  if (HasAsked(guest, 0)) return false;
  guest.wire->AwaitRead();
  return true;
}

void Lobby::Serve() {
  while (true) {
    Request next;
    {
      absl::MutexLock lock(&mutex_);
      const auto due = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return stopping_ || !ready_.empty();
      };
      mutex_.Await(absl::Condition(&due));
      if (stopping_) return;
      next = std::move(ready_.front());
      ready_.pop_front();
    }
    HeadAnswer answer = answer_(next.head, next.wire->peer());
    Guest guest = {.wire = std::move(next.wire),
                   .until = SteadyNow() + kAnswerMax,
                   .head = std::move(next.rest),
                   .answer = std::move(answer)};
    if (!Send(guest)) continue;
    {
      absl::MutexLock lock(&mutex_);
      arrivals_.push_back(std::move(guest));
    }
    Wake();
  }
}

}  // namespace troupe
