#include "clients/cli/progress.h"

#include <ostream>
#include <utility>

#include "absl/time/clock.h"
#include "clients/cli/view/format.h"

namespace troupe {
namespace {

constexpr absl::Duration kEvery = absl::Milliseconds(500);
// Before, the pace is not known.
constexpr absl::Duration kPaceAfter = absl::Seconds(3);

}  // namespace

Progress::Progress(Console& console, Interrupt& interrupt, std::string what)
    : console_(console),
      interrupt_(interrupt),
      what_(std::move(what)),
      shown_at_(absl::Now()) {}

Progress::~Progress() {
  if (shown_) console_.err << "\n";
}

absl::Status Progress::Show(int64_t done, int64_t total) {
  if (interrupt_.Arrived()) return absl::CancelledError("interrupted");
  if (first_done_ < 0) {
    first_done_ = done;
    first_at_ = absl::Now();
  }
  if (!console_.terminal || absl::Now() - shown_at_ < kEvery) {
    return absl::OkStatus();
  }
  shown_at_ = absl::Now();
  shown_ = true;
  console_.err << "\r" << what_ << BytesText(done);
  if (total > 0) {
    console_.err << " of " << BytesText(total) << " ("
                 << PercentText(static_cast<double>(done) / total) << ")";
  }
  const absl::Duration spent = shown_at_ - first_at_;
  if (total > done && done > first_done_ && spent > kPaceAfter) {
    const double each = absl::ToDoubleSeconds(spent) / (done - first_done_);
    console_.err << ", " << ClockText(each * (total - done)) << " left";
  }
  console_.err << "      " << std::flush;
  return absl::OkStatus();
}

}  // namespace troupe
