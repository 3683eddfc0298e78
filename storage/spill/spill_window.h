// Any bytes of a spill file, in memory that need not be aligned: how a state
// that rests there is set, and saved, a little of it in memory at a time.
//
//   SpillWindow window(*queue);
//   RETURN_IF_ERROR(window.Write(offset, bytes, data));
//   RETURN_IF_ERROR(window.Read(offset, bytes, data));
//   RETURN_IF_ERROR(window.Flush());     // all that was written is in the file
//
// The blocks around what is asked for come with it and stay until others are,
// so neighbours cost one move. REQUIRES that nobody else writes within
// kWindowBytes of it from a first use until the next Flush.
#ifndef TROUPE_STORAGE_SPILL_SPILL_WINDOW_H_
#define TROUPE_STORAGE_SPILL_SPILL_WINDOW_H_

#include <cstdint>

#include "absl/status/status.h"
#include "storage/spill/spill_queue.h"

namespace troupe {

class SpillWindow {
 public:
  static constexpr uint64_t kWindowBytes = 4 << 20;

  // Borrows the queue.
  explicit SpillWindow(SpillQueue& queue) : queue_(queue) {}
  // What was not flushed is lost.
  ~SpillWindow();
  SpillWindow(const SpillWindow&) = delete;
  SpillWindow& operator=(const SpillWindow&) = delete;

  // Errors are those of the queue.
  absl::Status Read(uint64_t offset, uint64_t bytes, char* to);
  absl::Status Write(uint64_t offset, uint64_t bytes, const char* from);
  // Then the window shows nothing: what others write next is read.
  absl::Status Flush();

 private:
  // Moves the window to where `offset` is. `whole`: all of it is to be
  // overwritten, so that it need not be read.
  absl::Status MoveTo(uint64_t offset, bool whole);
  uint64_t BytesAt(uint64_t begin) const;

  SpillQueue& queue_;
  char* data_ = nullptr;  // kWindowBytes, from the first use on
  SpillRange range_;      // that it shows; empty: nothing
  bool changed_ = false;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_SPILL_SPILL_WINDOW_H_
