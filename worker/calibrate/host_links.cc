#include "worker/calibrate/host_links.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

constexpr double kLatencySeconds = 0.1;  // for exchanges of few bytes, about
constexpr double kMovingSeconds = 0.25;  // for many bytes, each time
constexpr int64_t kRepeatsMin = 3;       // of few bytes
constexpr int64_t kRepeatsMax = 50;      // the same
constexpr int64_t kRepeats = 3;          // of many
constexpr int64_t kFewBytes = 4;
constexpr int64_t kProbeBytes = 256 << 10;
constexpr int64_t kLeastBytes = 64 << 10;
// Of all that may be sent, what one exchange of many bytes may have: the probe,
// kRepeats exchanges alone and one more together come to less than all.
constexpr int64_t kPartOfAll = 8;

class Measurer {
 public:
  Measurer(Communicator& communicator, const Clock& clock,
           const HostLinksOptions& options)
      : communicator_(communicator),
        clock_(clock),
        bytes_max_(std::max(options.bytes_max / kPartOfAll, kLeastBytes)),
        end_(clock.MonotonicNanos() +
             absl::ToInt64Nanoseconds(options.time_max)),
        half_(communicator.size() / 2),
        peer_((communicator.rank() + half_) % communicator.size()),
        send_(std::max(bytes_max_, kProbeBytes)),
        receive_(send_.size()) {}

  absl::StatusOr<HostLinks> Run() {
    HostLinks links;
    RETURN_IF_ERROR(communicator_.Barrier(Call()));
    int64_t bytes = 0;
    if (communicator_.rank() % half_ == 0) {
      ASSIGN_OR_RETURN(bytes, MeasureAlone(links.alone));
    }
    RETURN_IF_ERROR(communicator_.Broadcast(Number(bytes), 0, Call()));
    bytes = std::clamp<int64_t>(bytes / half_, 1, bytes_max_);
    RETURN_IF_ERROR(communicator_.Barrier(Call()));
    // Adapters and switches let a burst pass after a rest.
    RETURN_IF_ERROR(Exchange(bytes, 1).status());
    ASSIGN_OR_RETURN(const double seconds, Exchange(bytes, kRepeats));
    links.together = static_cast<double>(kRepeats * bytes) / seconds;
    return links;
  }

 private:
  CommOptions Call() const {
    return {
        .name = "a measurement of links",
        .timeout = std::max(absl::Milliseconds(1),
                            absl::Nanoseconds(end_ - clock_.MonotonicNanos()))};
  }

  CommBuffer Number(int64_t& number) const {
    return {.data = &number, .elements = 1, .element = DType::kI64};
  }

  // Seconds of `times` exchanges, one after the other.
  absl::StatusOr<double> Exchange(int64_t bytes, int64_t times) {
    const int64_t begin = clock_.MonotonicNanos();
    for (int64_t i = 0; i < times; ++i) {
      RETURN_IF_ERROR(
          communicator_.Shift({.send = {send_.data(), bytes, DType::kU8},
                               .to = peer_,
                               .receive = {receive_.data(), bytes, DType::kU8},
                               .from = peer_},
                              Call()));
    }
    const auto ns = static_cast<double>(clock_.MonotonicNanos() - begin);
    return std::max(1.0, ns) * 1e-9;
  }

  // The fastest of some exchanges of few bytes. Each says whether the first
  // rank has time for another.
  absl::StatusOr<double> ExchangeFew() {
    const bool decides = communicator_.rank() == 0;
    double fastest = std::numeric_limits<double>::infinity();
    double all = 0;
    bool more = true;
    for (int64_t i = 1; more; ++i) {
      more = i < kRepeatsMax && (i < kRepeatsMin || all < kLatencySeconds);
      send_[0] = more ? 1 : 0;
      ASSIGN_OR_RETURN(const double seconds, Exchange(kFewBytes, 1));
      if (!decides) more = receive_[0] != 0;
      all += seconds;
      fastest = std::min(fastest, seconds);
    }
    return fastest;
  }

  // What the first rank of the pair says, at both.
  absl::StatusOr<int64_t> Agree(int64_t number) {
    if (communicator_.rank() == 0) {
      RETURN_IF_ERROR(communicator_.Send(Number(number), peer_, Call()));
    } else {
      RETURN_IF_ERROR(communicator_.Recv(Number(number), peer_, Call()));
    }
    return number;
  }

  // How many bytes move in the time that there is.
  absl::StatusOr<int64_t> MeasureAlone(LinkRate& rate) {
    ASSIGN_OR_RETURN(const double few, ExchangeFew());
    ASSIGN_OR_RETURN(const double probe, Exchange(kProbeBytes, 1));
    const double reached = kProbeBytes / probe;
    ASSIGN_OR_RETURN(const int64_t bytes,
                     Agree(std::clamp(static_cast<int64_t>(
                                          reached * kMovingSeconds / kRepeats),
                                      kLeastBytes, bytes_max_)));
    ASSIGN_OR_RETURN(const double many, Exchange(bytes, kRepeats));
    rate.set_latency_us(few / 2 * 1e6);
    rate.set_bytes_per_second(static_cast<double>(kRepeats * bytes) /
                              std::max(many - kRepeats * few, many / 10));
    return bytes;
  }

  Communicator& communicator_;
  const Clock& clock_;
  const int64_t bytes_max_;  // of one exchange
  const int64_t end_;        // ns of the clock
  const int half_;
  const int peer_;
  std::vector<char> send_;
  std::vector<char> receive_;
};

}  // namespace

absl::StatusOr<HostLinks> MeasureHostLinks(Communicator& communicator,
                                           const Clock& clock,
                                           const HostLinksOptions& options) {
  CHECK_EQ(communicator.size() % 2, 0);
  return Measurer(communicator, clock, options).Run();
}

}  // namespace troupe
