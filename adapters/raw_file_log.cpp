#include "adapters/raw_file_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "adapters/opening.h"

namespace assay {
namespace {

constexpr std::uint64_t kHeaderPage = kRawBlockBytes;
constexpr std::uint32_t kCommit = 0x4d4d4f43;         // "COMM"
constexpr std::uint32_t kMark = 0x4b52414d;           // "MARK"
constexpr std::uint64_t kMagic = 0x5741525941535341;  // "ASSAYRAW"
constexpr std::uint64_t kVersion = 1;

struct RawSegmentHeader {
  std::uint64_t magic = kMagic;
  std::uint64_t version = kVersion;
  std::uint64_t log_id = 0;
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  std::uint64_t method = 0;  // that this segment was made for
  std::uint64_t checksum = 0;
  [[nodiscard]] std::uint64_t expected() const {
    return XXH3_64bits(this, offsetof(RawSegmentHeader, checksum));
  }
};

struct FrameHeader {
  std::uint64_t checksum = 0;
  std::uint64_t sequence = 0;
  std::uint32_t payload_bytes = 0;
  std::uint32_t kind = 0;
};
static_assert(sizeof(FrameHeader) == RawFrame::kHeaderBytes);

constexpr std::uint64_t padded(std::uint64_t bytes) {
  return (bytes + 7) / 8 * 8;
}
constexpr std::uint64_t blocks(std::uint64_t bytes) {
  return (bytes + kRawBlockBytes - 1) / kRawBlockBytes * kRawBlockBytes;
}

std::uint64_t checksum_of(const char* frame, std::uint64_t payload_bytes, std::uint64_t previous) {
  const std::size_t skipped = sizeof(std::uint64_t);  // the checksum itself
  return XXH3_64bits_withSeed(frame + skipped, sizeof(FrameHeader) - skipped + payload_bytes,
                              previous);
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  ASSAY_CHECK(::getrandom(&number, sizeof number, 0) == sizeof number, "no random bytes");
  return number;
}

void append_length(std::string& bytes, std::size_t length) {
  const auto narrow = static_cast<std::uint32_t>(length);
  bytes.append(reinterpret_cast<const char*>(&narrow), sizeof narrow);
}

/// A file mapped for reading as long as the object lives.
class Mapping {
 public:
  Mapping(int file, std::uint64_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    void* at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    if (at != MAP_FAILED) data_ = static_cast<const char*>(at);
  }
  ~Mapping() {
    if (data_ != nullptr) ::munmap(const_cast<char*>(data_), bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  [[nodiscard]] const char* data() const { return data_; }

 private:
  const char* data_ = nullptr;
  std::uint64_t bytes_;
};

std::uint64_t file_bytes(int file) {
  struct stat info{};
  return ::fstat(file, &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

}  // namespace

void RawFrame::put(std::string_view key, std::string_view value) {
  append_length(bytes_, key.size());
  append_length(bytes_, value.size());
  bytes_.append(key).append(value);
}

void RawFrame::erase(std::string_view key) {
  append_length(bytes_, key.size());
  append_length(bytes_, kErased);
  bytes_.append(key);
}

std::uint64_t RawFrame::seal(std::uint32_t kind, std::uint64_t sequence, std::uint64_t previous) {
  FrameHeader header;
  header.sequence = sequence;
  header.payload_bytes = static_cast<std::uint32_t>(bytes_.size() - kHeaderBytes);
  header.kind = kind;
  std::memcpy(bytes_.data(), &header, sizeof header);
  header.checksum = checksum_of(bytes_.data(), header.payload_bytes, previous);
  std::memcpy(bytes_.data(), &header.checksum, sizeof header.checksum);
  bytes_.resize(padded(bytes_.size()), '\0');
  return header.checksum;
}

bool visit_entries(std::string_view payload, const std::function<void(const RawEntry&)>& visit) {
  std::size_t at = 0;
  while (at < payload.size()) {
    std::uint32_t lengths[2];
    if (payload.size() - at < sizeof lengths) return false;
    std::memcpy(lengths, payload.data() + at, sizeof lengths);
    at += sizeof lengths;
    RawEntry entry;
    entry.erased = lengths[1] == RawFrame::kErased;
    entry.value_bytes = entry.erased ? 0 : lengths[1];
    if (payload.size() - at < std::uint64_t{lengths[0]} + entry.value_bytes) return false;
    entry.key = payload.substr(at, lengths[0]);
    entry.value_offset = at + lengths[0];
    at = entry.value_offset + entry.value_bytes;
    visit(entry);
  }
  return true;
}

// ---- segments ----

std::string RawLog::path(std::size_t number) const {
  return fmt::format("{}/raw-{:06}.log", options_.directory, number);
}

Status RawLog::create_segment(std::size_t number, std::uint64_t bytes) const {
  const std::string temporary = fmt::format("{}/raw-{:06}.tmp", options_.directory, number);
  ::unlink(temporary.c_str());  // of a preparation that was cut off
  const bool durable = synced() || number == 1;
  ASSAY_TRY(write_zeros(temporary, synced() ? bytes : kHeaderPage, durable));
  RawSegmentHeader header;
  header.log_id = log_id_;
  header.number = number;
  header.bytes = bytes;
  header.method = static_cast<std::uint64_t>(options_.method);
  header.checksum = header.expected();
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CLOEXEC);
  int code = file < 0 ? errno : 0;
  if (code == 0) code = write_fully(file, reinterpret_cast<const char*>(&header), sizeof header, 0);
  if (code == 0 && durable && ::fdatasync(file) != 0) code = errno;
  if (file >= 0) ::close(file);
  if (code == 0 && ::rename(temporary.c_str(), path(number).c_str()) != 0) code = errno;
  if (code != 0)
    return fail(system_error("raw-file: cannot prepare a segment", code).at(path(number)));
  return durable ? sync_directory(options_.directory) : Status{};
}

/// False: there is no such segment, or none of this log.
Result<bool> RawLog::open_segment(std::size_t number) {
  Segment segment;
  segment.read = ::open(path(number).c_str(), O_RDONLY | O_CLOEXEC);
  if (segment.read < 0) {
    if (errno == ENOENT) return false;
    return fail(system_error("raw-file: cannot open a segment", errno).at(path(number)));
  }
  RawSegmentHeader header;
  const ssize_t got = ::pread(segment.read, &header, sizeof header, 0);
  if (got < 0) {
    const int code = errno;
    ::close(segment.read);
    return fail(system_error("raw-file: cannot read a segment", code).at(path(number)));
  }
  const bool sound = got == sizeof header && header.magic == kMagic && header.number == number &&
                     header.checksum == header.expected() &&
                     (number == 1 || header.log_id == log_id_);
  if (!sound || header.version != kVersion) {
    ::close(segment.read);
    // Cut off while it was made: what is not synced may come back shorter, or as zeros.
    if (number > 1 && (got != sizeof header || header.magic != kMagic)) return false;
    return fail(Error(ErrorKind::bad_input, sound ? "raw-file: a log of another version"
                                                  : "raw-file: not a segment of this log")
                    .at(path(number))
                    .hint("give the store a directory of its own"));
  }
  if (number == 1) log_id_ = header.log_id;
  segment.bytes = header.bytes;
  segment.write = ::open(path(number).c_str(), O_WRONLY | O_CLOEXEC | open_flags(options_.method));
  if (segment.write < 0) {
    const int code = errno;
    ::close(segment.read);
    return fail(
        system_error(
            fmt::format("raw-file: cannot open a segment for {}", to_string(options_.method)), code)
            .at(path(number)));
  }
  segments_.push_back(segment);
  counters_.segments = segments_.size();
  return true;
}

RawMethod RawLog::recorded_method(const std::string& directory) {
  const std::string first = fmt::format("{}/{}", directory, main_file("raw-file"));
  const int file = ::open(first.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return RawMethod::none;
  RawSegmentHeader header;
  const bool sound = ::pread(file, &header, sizeof header, 0) == sizeof header &&
                     header.checksum == header.expected() &&
                     header.method <= static_cast<std::uint64_t>(RawMethod::odirect_dsync);
  ::close(file);
  return sound ? static_cast<RawMethod>(header.method) : RawMethod::none;
}

Result<std::unique_ptr<RawLog>> RawLog::open(const Options& options, bool fresh) {
  std::unique_ptr<RawLog> log(new RawLog(options));
  if (fresh) {
    log->log_id_ = random_number();
    const std::uint64_t count =
        log->synced() ? std::max<std::uint64_t>(1, options.prepare_bytes / options.segment_bytes)
                      : 1;
    // The first segment makes the directory a store, so it comes last.
    for (std::uint64_t number = count; number >= 1; --number) {
      ASSAY_TRY(log->create_segment(number, options.segment_bytes));
    }
  }
  for (std::size_t number = 1;; ++number) {
    const Result<bool> opened = log->open_segment(number);
    if (!opened) return std::unexpected(opened.error());
    if (!*opened) break;
  }
  ASSAY_TRY(log->find_end());
  ASSAY_TRY(log->start_at_end());
  return log;
}

Result<RawLog::InForce> RawLog::in_force() const {
  const Segment& segment = segments_[current_ - 1];
  const int flags = ::fcntl(segment.write, F_GETFL);
  if (flags < 0)
    return fail(
        system_error("raw-file: cannot ask for a segment's flags", errno).at(path(current_)));
  InForce in_force;
  const bool direct = (flags & O_DIRECT) != 0;
  const bool synchronous = (flags & O_DSYNC) != 0;
  in_force.open_flags = direct && synchronous ? "O_DIRECT|O_DSYNC"
                        : direct              ? "O_DIRECT"
                        : synchronous         ? "O_DSYNC"
                                              : "none";
  // No flag tells a write that a sync call follows from one that is left alone.
  in_force.method = direct        ? RawMethod::odirect_dsync
                    : synchronous ? RawMethod::odsync
                    : synced()    ? RawMethod::fdatasync
                                  : RawMethod::none;
  in_force.segment_bytes = segment.bytes;
  for (const Segment& each : segments_) {
    if (synced()) in_force.prepared_bytes += file_bytes(each.read);
  }
  return in_force;
}

RawLog::~RawLog() {
  static_cast<void>(close());
}

Status RawLog::close() {
  if (preparer_.joinable()) preparer_.join();
  preparing_ = 0;
  int code = 0;
  for (Segment& segment : segments_) {
    if (::close(segment.write) != 0) code = errno;
    ::close(segment.read);
  }
  segments_.clear();
  if (code != 0)
    return fail(system_error("raw-file: cannot close a segment", code).at(options_.directory));
  return {};
}

// ---- reading ----

Status RawLog::walk(const Visit& visit, std::size_t& number, std::uint64_t& at,
                    std::uint64_t& frames) {
  std::uint64_t checksum = log_id_;
  std::uint64_t sequence = 0;
  number = 1;
  at = kHeaderPage;
  frames = 0;
  for (std::size_t reading = 1; reading <= segments_.size(); ++reading) {
    const int file = segments_[reading - 1].read;
    const std::uint64_t bytes = file_bytes(file);
    const Mapping mapping(file, bytes);
    if (bytes != 0 && mapping.data() == nullptr) {
      return fail(system_error("raw-file: cannot map a segment", errno).at(path(reading)));
    }
    std::uint64_t next = kHeaderPage;
    while (next + sizeof(FrameHeader) <= bytes) {
      FrameHeader header;
      std::memcpy(&header, mapping.data() + next, sizeof header);
      if (header.sequence != sequence + 1 || (header.kind != kCommit && header.kind != kMark) ||
          header.payload_bytes > bytes - next - sizeof header ||
          header.checksum != checksum_of(mapping.data() + next, header.payload_bytes, checksum)) {
        break;
      }
      if (header.kind == kCommit && visit) {
        visit(file, next + sizeof header,
              {mapping.data() + next + sizeof header, header.payload_bytes});
      }
      checksum = header.checksum;
      sequence = header.sequence;
      frames += header.kind == kCommit ? 1 : 0;
      next += padded(sizeof header + header.payload_bytes);
      number = reading;
      at = next;
    }
    if (number != reading) break;  // nothing of the log in this segment, so nothing behind it
  }
  checksum_ = checksum;
  sequence_ = sequence;
  return {};
}

Status RawLog::find_end() {
  return walk({}, current_, at_, counters_.recovered_frames);
}

Status RawLog::replay(const Visit& visit) {
  const std::uint64_t checksum = checksum_;
  std::size_t number = 0;
  std::uint64_t at = 0;
  std::uint64_t frames = 0;
  ASSAY_TRY(walk(visit, number, at, frames));
  if (checksum != checksum_ || number != current_ || at != at_) {
    return poison(
        Error(ErrorKind::wrong_contents, "raw-file: the log reads back shorter than it was written")
            .at(path(number)));
  }
  return {};
}

Status RawLog::read(int file, std::uint64_t offset, std::size_t bytes, std::string& into) {
  into.resize(bytes);
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        ::pread(file, into.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return fail(system_error("raw-file: cannot read a value", got < 0 ? errno : EIO));
    done += static_cast<std::size_t>(got);
  }
  return {};
}

// ---- writing ----

Status RawLog::poison(Error error) {
  error.hint("this handle acknowledges nothing any more; reopen the store");
  poison_ = error;
  return fail(std::move(error));
}

Status RawLog::reserve_image(std::size_t bytes) {
  if (bytes <= image_capacity_) return {};
  const std::size_t capacity =
      std::max<std::size_t>(blocks(bytes), std::max<std::size_t>(image_capacity_ * 2, 1 << 16));
  std::unique_ptr<char, Free> larger(
      static_cast<char*>(std::aligned_alloc(kRawBlockBytes, capacity)));
  if (larger == nullptr)
    return fail(ErrorKind::environment, "raw-file: no memory for a group of commits");
  if (image_used_ != 0) std::memcpy(larger.get(), image_.get(), image_used_);
  image_ = std::move(larger);
  image_capacity_ = capacity;
  return {};
}

/// Loads the block in which the log ends, for the writes that begin in it.
Status RawLog::start_at_end() {
  image_at_ = at_ / kRawBlockBytes * kRawBlockBytes;
  image_used_ = 0;
  ASSAY_TRY(reserve_image(kRawBlockBytes));
  if (at_ == image_at_) return {};
  std::string block;
  ASSAY_TRY(read(segments_[current_ - 1].read, image_at_, at_ - image_at_, block));
  std::memcpy(image_.get(), block.data(), block.size());
  image_used_ = block.size();
  return {};
}

/// Writes the image: whole blocks where the method syncs, else only what is new.
Status RawLog::flush_image() {
  const std::uint64_t from = synced() ? 0 : at_ - image_at_;
  const std::uint64_t until = synced() ? blocks(image_used_) : image_used_;
  if (until == from) return {};
  std::memset(image_.get() + image_used_, 0, blocks(image_used_) - image_used_);
  const int file = segments_[current_ - 1].write;
  int code = write_fully(file, image_.get() + from, until - from, image_at_ + from);
  ++counters_.writes;
  if (code == 0 && options_.method == RawMethod::fdatasync && ::fdatasync(file) != 0) code = errno;
  counters_.syncs += synced() ? 1 : 0;
  if (code != 0)
    return poison(system_error("raw-file: cannot write the log", code).at(path(current_)));
  at_ = image_at_ + image_used_;
  // Keep the block in which the next frame begins.
  const std::uint64_t whole = image_used_ / kRawBlockBytes * kRawBlockBytes;
  std::memmove(image_.get(), image_.get() + whole, image_used_ - whole);
  image_at_ += whole;
  image_used_ -= whole;
  return {};
}

Status RawLog::append(std::span<RawFrame* const> frames) {
  if (poison_) return fail(*poison_);
  RawFrame mark;
  std::vector<RawFrame*> all;
  if (!marked_) {
    mark.put({}, fmt::format("{:016x}", random_number()));
    all.push_back(&mark);
  }
  all.insert(all.end(), frames.begin(), frames.end());
  for (RawFrame* frame : all) {
    const std::uint64_t bytes = padded(frame->size());
    if (image_at_ + image_used_ + bytes > segments_[current_ - 1].bytes) {
      ASSAY_TRY(flush_image());
      ASSAY_TRY(rotate(bytes));
    }
    if (const Status reserved = reserve_image(image_used_ + bytes); !reserved) {
      return poison(reserved.error());
    }
    checksum_ = frame->seal(frame == &mark ? kMark : kCommit, ++sequence_, checksum_);
    frame->file = segments_[current_ - 1].read;
    frame->payload_offset = image_at_ + image_used_ + sizeof(FrameHeader);
    std::memcpy(image_.get() + image_used_, frame->bytes().data(), bytes);
    image_used_ += bytes;
    counters_.frames += frame == &mark ? 0 : 1;
  }
  marked_ = true;
  ASSAY_TRY(flush_image());
  if (synced() && at_ > segments_[current_ - 1].bytes / 2) prepare_next();
  return {};
}

/// Starts making the next segment beside the commits, if there is none yet.
void RawLog::prepare_next() {
  const std::size_t next = current_ + 1;
  if (next <= segments_.size() || preparing_ != 0) return;
  preparing_ = next;
  preparer_ = std::thread([this, next] {
    const Status status = create_segment(next, options_.segment_bytes);
    if (!status) prepare_error_ = status.error();
  });
}

Status RawLog::finish_preparing() {
  if (preparing_ == 0) return {};
  if (preparer_.joinable()) preparer_.join();
  const std::size_t number = preparing_;
  preparing_ = 0;
  if (prepare_error_) {
    const Error error = *prepare_error_;
    prepare_error_.reset();  // the next commit tries again
    return fail(error);
  }
  const Result<bool> opened = open_segment(number);
  if (!opened) return std::unexpected(opened.error());
  return {};
}

Status RawLog::rotate(std::uint64_t frame_bytes) {
  ASSAY_TRY(finish_preparing());
  const std::size_t next = current_ + 1;
  const std::uint64_t wanted =
      std::max(options_.segment_bytes, blocks(kHeaderPage + frame_bytes + kRawBlockBytes));
  // A frame that is larger than any segment so far gets one of its own size.
  const bool fits =
      next <= segments_.size() && segments_[next - 1].bytes >= kHeaderPage + frame_bytes;
  if (!fits) {
    ++counters_.prepare_waits;
    while (segments_.size() >= next) {
      ::close(segments_.back().write);
      ::close(segments_.back().read);
      segments_.pop_back();
    }
    ASSAY_TRY(create_segment(next, wanted));
    const Result<bool> opened = open_segment(next);
    if (!opened) return std::unexpected(opened.error());
    // Larger segments prepared behind it are used again when their turn comes.
    for (std::size_t number = next + 1;; ++number) {
      const Result<bool> more = open_segment(number);
      if (!more) return std::unexpected(more.error());
      if (!*more) break;
    }
  }
  current_ = next;
  at_ = image_at_ = kHeaderPage;
  image_used_ = 0;
  return {};
}

Status RawLog::sync() {
  if (poison_) return fail(*poison_);
  for (const Segment& segment : segments_) {
    if (::fdatasync(segment.write) != 0) {
      return poison(system_error("raw-file: cannot sync the log", errno).at(options_.directory));
    }
  }
  return sync_directory(options_.directory);
}

}  // namespace assay
