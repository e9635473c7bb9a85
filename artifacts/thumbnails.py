"""Small pictures of pictures.

A picture that is broken, too large or of another kind has none, and that is no error.

Spec: issue "Artifacts" 1.
"""

import io
import logging
import threading
from typing import BinaryIO, Final

from PIL import Image, ImageOps

logger = logging.getLogger(__name__)

#: Of the longer side.
THUMBNAIL_PIXELS: Final = 256

#: Pixels of a picture that is decoded at all: 50 million are 200 MB for a moment.
MAX_PIXELS: Final = 50_000_000

MIME_TYPE: Final = "image/webp"

#: By the MIME type; nothing else is tried, so that no other decoder sees the bytes.
#: Never SVG, which is a program.
_FORMATS: Final = {
    "image/avif": "AVIF",
    "image/bmp": "BMP",
    "image/gif": "GIF",
    "image/jpeg": "JPEG",
    "image/png": "PNG",
    "image/webp": "WEBP",
}

#: A decoded picture is large; one at a time in a process.
_one_at_a_time = threading.Lock()


def make_thumbnail(file: BinaryIO, mime_type: str) -> bytes | None:
    """Return a picture of at most 256 × 256 pixels as WebP; None for none.

    Args:
        file: Is read from its beginning and left anywhere.
        mime_type: As the bytes tell.
    """
    known = _FORMATS.get(mime_type)
    if known is None:
        return None
    file.seek(0)
    try:
        with _one_at_a_time, Image.open(file, formats=[known]) as image:
            return _small(image)
    # Decoders raise whatever they like at bytes that somebody made up.
    except Exception as error:  # noqa: BLE001
        logger.info("no thumbnail of %s: %r", mime_type, error)
        return None


def _small(image: Image.Image) -> bytes | None:
    # Before anything is decoded: the size is in the header.
    if image.width * image.height > MAX_PIXELS:
        return None
    size = (THUMBNAIL_PIXELS, THUMBNAIL_PIXELS)
    # A JPEG can be decoded small; as it is turned, either side may be the longer.
    image.draft("RGB", (2 * THUMBNAIL_PIXELS, 2 * THUMBNAIL_PIXELS))
    image.thumbnail(size)
    upright = ImageOps.exif_transpose(image)
    has_alpha = upright.has_transparency_data
    shown = upright.convert("RGBA" if has_alpha else "RGB")
    # What else came with the picture, such as where it was taken, stays behind.
    shown.info.clear()
    target = io.BytesIO()
    shown.save(target, "WEBP", quality=80)
    return target.getvalue()
