#include "worker/collective/shared_memory/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

absl::Status Unavailable(const std::string& what) {
  return absl::UnavailableError(
      absl::StrCat(what, ": ", absl::ErrnoToStatus(errno, "").message()));
}

size_t FileBytes(size_t bytes) { return bytes + sizeof(uint64_t); }

}  // namespace

absl::StatusOr<SharedSegment> SharedSegment::Create(size_t bytes) {
  // The kernel would look for it until it had to kill somebody.
  const size_t memory = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) *
                        static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (bytes > memory / 2) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot reserve ", bytes,
                     " bytes of shared memory: the "
                     "machine has ",
                     memory, " bytes in all"));
  }
  const int file = memfd_create("troupe", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return Unavailable("memfd_create");
  SharedSegment segment(file, bytes);
  // Reserved, so that no later write can fail: that would be a signal.
  const int failed = posix_fallocate(file, 0, FileBytes(bytes));
  if (failed != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot reserve ", bytes, " bytes of shared memory: ",
                     absl::ErrnoToStatus(failed, "").message()));
  }
  // Nobody may cut off what others have mapped.
  fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  if (getrandom(&segment.nonce_, sizeof(nonce_), 0) != sizeof(nonce_) ||
      pwrite(file, &segment.nonce_, sizeof(nonce_), bytes) != sizeof(nonce_)) {
    return Unavailable("writing to a memfd");
  }
  RETURN_IF_ERROR(segment.Map());
  return segment;
}

absl::StatusOr<SharedSegment> SharedSegment::Open(const std::string& address) {
  const std::vector<std::string> words = absl::StrSplit(address, ' ');
  int64_t process = 0, number = 0;
  size_t bytes = 0;
  uint64_t nonce = 0;
  if (words.size() != 4 || !absl::SimpleAtoi(words[0], &process) ||
      !absl::SimpleAtoi(words[1], &number) ||
      !absl::SimpleAtoi(words[2], &bytes) ||
      !absl::SimpleHexAtoi(words[3], &nonce)) {
    return absl::UnavailableError(
        absl::StrCat("\"", address, "\" is no address of a segment"));
  }
  const std::string path = absl::StrCat("/proc/", process, "/fd/", number);
  // Another namespace may have any file there: no waiting for its other end.
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return Unavailable(path);
  SharedSegment segment(file, bytes);
  struct stat status;
  if (fstat(file, &status) != 0) return Unavailable(path);
  if (!S_ISREG(status.st_mode) || status.st_size != FileBytes(bytes) ||
      pread(file, &segment.nonce_, sizeof(nonce_), bytes) != sizeof(nonce_) ||
      segment.nonce_ != nonce) {
    return absl::UnavailableError(absl::StrCat(
        path, " is another file: the maker has its own PID namespace"));
  }
  RETURN_IF_ERROR(segment.Map());
  segment.Close();
  return segment;
}

absl::Status SharedSegment::Map() {
  void* const memory =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED) return Unavailable("mmap");
  data_ = static_cast<char*>(memory);
  // Fewer page faults and TLB misses, where the system is willing.
  madvise(memory, bytes_, MADV_HUGEPAGE);
  return absl::OkStatus();
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      bytes_(other.bytes_),
      nonce_(other.nonce_),
      data_(std::exchange(other.data_, nullptr)) {}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(bytes_, other.bytes_);
  std::swap(nonce_, other.nonce_);
  std::swap(data_, other.data_);
  return *this;
}

SharedSegment::~SharedSegment() {
  Close();
  if (data_ != nullptr) munmap(data_, bytes_);
}

std::string SharedSegment::address() const {
  return absl::StrCat(getpid(), " ", file_, " ", bytes_, " ",
                      absl::Hex(nonce_));
}

void SharedSegment::Close() {
  if (file_ >= 0) close(std::exchange(file_, -1));
}

}  // namespace troupe
