-- name: write_checkpoint
-- Everything dirty goes to disk now; the full-page images that follow are in each contender's time.
checkpoint; -- noqa: PRS
