#include "storage/engine/io_uring_engine.h"

#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "storage/disk/path_calls.h"
#include "storage/engine/posix_file.h"
#include "storage/engine/ring_tables.h"
#include "storage/engine/transfer.h"

namespace troupe {
namespace {

// What says that a completion is that of asking to cancel, and no slot's.
constexpr uint64_t kCancelled = UINT64_MAX;

// How an operation names a file: by its number in the ring's table, else by its
// descriptor.
struct FileName {
  int fd = -1;
  int number = -1;
};

// A file by way of the page cache and, where the file system allows it, past
// it. One of mode kDirect has a single descriptor, which is the first.
struct RingFile {
  PosixFile file;
  FileName first;
  FileName direct;
  bool direct_refused = false;
};

class IoUringEngine final : public IoEngine {
 public:
  IoUringEngine(int depth, const io_uring& ring)
      : depth_(depth),
        ring_(ring),
        known_files_(ring_),
        known_memory_(ring_),
        slots_(depth) {
    for (int i = depth - 1; i >= 0; --i) free_.push_back(i);
  }

  ~IoUringEngine() override {
    while (in_flight() > 0) Poll(absl::InfiniteDuration());
    // The ring's own end would come to it later, when nobody waits for it.
    io_uring_unregister_buffers(&ring_);
    io_uring_unregister_files(&ring_);
    io_uring_queue_exit(&ring_);
    for (auto& [id, file] : files_) {
      if (file->direct.fd >= 0) close(file->direct.fd);
    }
  }

  absl::string_view name() const override { return "io_uring"; }
  int depth() const override { return depth_; }
  int in_flight() const override {
    return depth_ - static_cast<int>(free_.size());
  }

  absl::StatusOr<IoFile> Open(const std::string& path, IoMode mode) override {
    ASSIGN_OR_RETURN(PosixFile file, PosixFile::Open(path, mode));
    // Refusal (EINVAL on some file systems) only costs the short way.
    const int direct_fd =
        mode == IoMode::kReadCached || mode == IoMode::kDirect
            ? -1
            : OpenPath(path,
                       (OpenFlags(mode) & ~(O_CREAT | O_TRUNC)) | O_DIRECT);
    const int id = next_id_++;
    const FileName first = {file.fd(), known_files_.Add(file.fd())};
    const FileName direct = {direct_fd, known_files_.Add(direct_fd)};
    files_.emplace(id, std::make_unique<RingFile>(
                           RingFile{std::move(file), first, direct}));
    return IoFile{id};
  }

  absl::StatusOr<uint64_t> Size(IoFile file) override {
    return Find(file).file.Size();
  }

  std::vector<IoCompletion> Poll(absl::Duration timeout) override {
    const absl::Time deadline = SteadyNow() + timeout;
    std::vector<IoCompletion> done;
    while (true) {
      for (const Result& result : Collect()) Advance(result);
      Enter();
      done.swap(done_);
      free_.insert(free_.end(), done_slots_.begin(), done_slots_.end());
      done_slots_.clear();
      if (!done.empty() || in_flight() == 0 || !Wait(deadline)) return done;
    }
  }

  void Cancel() override {
    Enter();  // the kernel can only cancel what it has
    for (int i = 0; i < depth_; ++i) {
      if (!slots_[i].under_way) continue;
      slots_[i].transfer.Cancel();
      // Where no more than the slots' room is left, it ends by itself.
      if (io_uring_sq_space_left(&ring_) <= static_cast<unsigned>(depth_)) {
        continue;
      }
      io_uring_sqe* entry = io_uring_get_sqe(&ring_);
      io_uring_prep_cancel64(entry, static_cast<uint64_t>(i), 0);
      io_uring_sqe_set_data64(entry, kCancelled);
    }
    Enter();
  }

  absl::Status RegisterMemory(char* data, size_t bytes) override {
    return known_memory_.Add(data, bytes);
  }

  void ForgetMemory(const char* data) override { known_memory_.Remove(data); }

  absl::Status Sync(IoFile file) override { return Find(file).file.Sync(); }

  absl::Status Close(IoFile file) override {
    RingFile& open = Find(file);
    known_files_.Remove(open.first.number);
    known_files_.Remove(open.direct.number);
    if (open.direct.fd >= 0) close(open.direct.fd);
    const absl::Status status = open.file.Close();
    files_.erase(file.id);
    return status;
  }

 protected:
  void Start(absl::Span<const IoRequest> requests) override {
    for (const IoRequest& request : requests) {
      RingFile& file = Find(request.file);
      const int index = free_.back();
      free_.pop_back();
      slots_[index] = {FileTransfer(request, file.file.path()), &file,
                       /*direct=*/false, /*under_way=*/true};
      if (request.bytes == 0) {
        Finish(index);  // nothing for the kernel to do
      } else {
        Prepare(index);
      }
    }
    Enter();
  }

 private:
  struct Slot {
    FileTransfer transfer;
    RingFile* file = nullptr;  // stays open while a request is in flight
    bool direct = false;       // whether the operation under way is
    bool under_way = false;    // and not finished
  };
  struct Result {
    int slot;
    int result;  // bytes or -errno
  };

  RingFile& Find(IoFile file) {
    const auto it = files_.find(file.id);
    CHECK(it != files_.end()) << "file " << file.id << " is not open";
    return *it->second;
  }

  // Queues the slot's next operation. A slot has one entry at a time, for which
  // the ring always has room.
  void Prepare(int index) {
    Slot& slot = slots_[index];
    const FileTransfer& t = slot.transfer;
    slot.direct = slot.file->direct.fd >= 0 && !slot.file->direct_refused &&
                  t.FitsDirect();
    const FileName& name = slot.direct ? slot.file->direct : slot.file->first;
    const int file = name.number >= 0 ? name.number : name.fd;
    const int memory = known_memory_.Find(t.data(), t.bytes());
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    CHECK(entry != nullptr);
    const bool reads = t.request().kind == IoKind::kRead;
    const unsigned bytes = static_cast<unsigned>(t.bytes());
    if (reads && memory >= 0) {
      io_uring_prep_read_fixed(entry, file, t.data(), bytes, t.offset(),
                               memory);
    } else if (reads) {
      io_uring_prep_read(entry, file, t.data(), bytes, t.offset());
    } else if (memory >= 0) {
      io_uring_prep_write_fixed(entry, file, t.data(), bytes, t.offset(),
                                memory);
    } else {
      io_uring_prep_write(entry, file, t.data(), bytes, t.offset());
    }
    if (name.number >= 0) io_uring_sqe_set_flags(entry, IOSQE_FIXED_FILE);
    io_uring_sqe_set_data64(entry, static_cast<uint64_t>(index));
  }

  // Hands the queued entries to the kernel.
  void Enter() {
    while (io_uring_sq_ready(&ring_) > 0) {
      const int result = io_uring_submit(&ring_);
      if (result >= 0 || result == -EINTR) continue;
      // Out of kernel memory for now, or completions wait: the entries stay
      // queued, and the next Poll, which collects first, hands them over.
      if (result == -EAGAIN || result == -EBUSY || result == -ENOMEM) return;
      CHECK(false) << "io_uring_submit: " << strerror(-result);
    }
  }

  // Takes all completions off the ring before any is acted on, so that what
  // follows one cannot be held up by, or overtake, the others.
  std::vector<Result> Collect() {
    std::vector<Result> results;
    io_uring_cqe* entry;
    unsigned head;
    unsigned count = 0;
    io_uring_for_each_cqe(&ring_, head, entry) {
      ++count;
      if (entry->user_data == kCancelled) continue;
      results.push_back({static_cast<int>(entry->user_data), entry->res});
    }
    io_uring_cq_advance(&ring_, count);
    return results;
  }

  void Advance(const Result& result) {
    Slot& slot = slots_[result.slot];
    if (slot.transfer.Advance(result.result, slot.direct) ==
        FileTransfer::Next::kDone) {
      Finish(result.slot);
      return;
    }
    if (slot.transfer.direct_refused()) slot.file->direct_refused = true;
    Prepare(result.slot);
  }

  // The slot stays taken until Poll hands the completion out.
  void Finish(int index) {
    slots_[index].under_way = false;
    const FileTransfer& transfer = slots_[index].transfer;
    done_.push_back({transfer.request().tag, transfer.status()});
    done_slots_.push_back(index);
  }

  // True when it is worth to collect again, false when the deadline passed.
  bool Wait(absl::Time deadline) {
    while (true) {
      const absl::Duration left = deadline - SteadyNow();
      if (left <= absl::ZeroDuration()) return false;
      // Entries that the kernel could not take yet are offered again soon.
      const bool queued = io_uring_sq_ready(&ring_) > 0;
      const timespec span = absl::ToTimespec(
          std::min(left, queued ? absl::Milliseconds(10) : absl::Hours(1)));
      __kernel_timespec wait = {span.tv_sec, span.tv_nsec};
      io_uring_cqe* entry;
      const int result = io_uring_wait_cqe_timeout(&ring_, &entry, &wait);
      if (result == 0 || queued) return true;
      CHECK(result == -ETIME || result == -EINTR || result == -EAGAIN)
          << "io_uring_wait_cqe_timeout: " << strerror(-result);
    }
  }

  const int depth_;
  io_uring ring_;
  RingFiles known_files_;
  RingMemory known_memory_;
  int next_id_ = 0;
  absl::flat_hash_map<int, std::unique_ptr<RingFile>> files_;
  std::vector<Slot> slots_;
  std::vector<int> free_;           // slots
  std::vector<IoCompletion> done_;  // finished, not yet handed out
  std::vector<int> done_slots_;     // theirs
};

}  // namespace

absl::StatusOr<std::unique_ptr<IoEngine>> MakeIoUringEngine(int depth) {
  CHECK(depth >= 1 && depth <= 4096) << depth;
  io_uring ring;
  io_uring_params params = {};
  const int error = io_uring_queue_init_params(2 * static_cast<unsigned>(depth),
                                               &ring, &params);
  if (error == -ENOSYS) {
    return absl::UnavailableError("the kernel has no io_uring (ENOSYS)");
  }
  if (error == -EPERM || error == -EACCES) {
    return absl::UnavailableError(
        "io_uring is forbidden here (a container's seccomp filter, or sysctl "
        "kernel.io_uring_disabled)");
  }
  if (error == -ENOMEM) {
    return absl::UnavailableError(
        "io_uring may lock no more memory; raise ulimit -l");
  }
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("io_uring_queue_init: ", strerror(-error)));
  }
  constexpr unsigned kNeeded = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP;
  if ((params.features & kNeeded) != kNeeded) {
    io_uring_queue_exit(&ring);
    return absl::UnavailableError("io_uring needs Linux 5.11 or later");
  }
  return std::make_unique<IoUringEngine>(depth, ring);
}

}  // namespace troupe
