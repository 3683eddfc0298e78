// What the log says while this lives, which another thread may write a little
// after what it tells of.
#ifndef TROUPE_TESTS_PROTO_TRUST_CAPTURED_LOG_H_
#define TROUPE_TESTS_PROTO_TRUST_CAPTURED_LOG_H_

#include <cstdlib>
#include <string>

namespace troupe {

class CapturedLog {
 public:
  CapturedLog();
  ~CapturedLog();
  CapturedLog(const CapturedLog&) = delete;

  // All of it, once it has `lines` lines with `words`, or after ten seconds.
  std::string Await(size_t lines, const std::string& words) const;
  size_t Count(const std::string& words) const;

 private:
  std::string Text() const;

  const std::string path_;
  const int stderr_;  // as it was
};

}  // namespace troupe

#endif  // TROUPE_TESTS_PROTO_TRUST_CAPTURED_LOG_H_
